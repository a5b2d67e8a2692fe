"""The KRaft metadata log: the image at an offset, its history, the difference of two images (KIP-500, 630, 631).

Other answers use ``image.py``. ``replay.py`` turns records that cannot be applied into data.
"""

"""The KRaft metadata log: the image at an offset, its history, the difference of two images (KIP-500, 630, 631).

``image.py`` has what other answers ask of it. In ``replay.py`` a record that does not apply becomes data.
"""

"""Tables of answers for people, one module per command: ``tables()`` converts answer lines. Urgent tables come
first.
"""

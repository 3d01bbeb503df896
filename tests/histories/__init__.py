"""Judges of what clients have seen: whether one server, doing one command after the other, could have
answered so.

rows.py     each row for itself: linearizable (Wing and Gong, with Lowe's memo)
appends.py  transactions that append to rows and read them: strictly serializable, in linear time
"""

"""The dead-letter desk: find, retry, discard and resolve dead jobs of all queues.

Dead jobs stay in their queues; the desk only finds them.
"""

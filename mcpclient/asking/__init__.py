"""Layer 7, beside the engine: what the faces for people share to ask a person something.

``questions`` and ``pages`` know what is asked, ``talk`` in which order, all of them without any
input or output; ``terminal`` and ``browser`` know the person's machine.
"""

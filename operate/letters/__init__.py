"""Dead letters: what stands on a queue, and how it goes elsewhere without being lost or doubled.

`records` makes a message a JSON object, and back. `groups` puts letters together that failed alike, and `selection`
says which ones are meant. `moving` takes them from their queue and sends them: back to their original queue, to another
queue, or nowhere; `routes` says how each one leaves.
"""

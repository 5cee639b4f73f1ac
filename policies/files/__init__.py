"""Files as trees that know where everything stands: bytes in, values with their line and column out.

`xml` and `json_tree` make trees of files, and nothing that a file says is loaded, expanded or run. `names` reads and
spells the values of settings, `expressions` refuses regular expressions that could take for ever, and `report` collects
all that is wrong, so that one error says it. `places` says where something stands; `xml_text` writes XML.
"""

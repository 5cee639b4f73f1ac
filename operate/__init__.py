"""Works with a broker's rules, and with a broker that runs: nothing here prints.

`simulate` plays a message that always fails, `plot` draws that, `diff` says what two configurations treat differently
(by `examples` of their patterns), and `as_json` makes values for programs of all this. `convert` writes a configuration
in another format, by `conversion/`. `doctor/` looks at a broker that runs, `letters/` works on dead letters, and
`management/` asks a broker's management over HTTP.
"""

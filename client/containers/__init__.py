"""Listener containers: workers that consume a destination for years, and what their handler's outcome means.

A worker is a session, a consumer and a thread (or a task). It takes one message at a time, calls the handler, and
commits, or rolls back with the handler's failure as the cause; the connection comes back under it (`connection`).

| file | what it says |
|---|---|
| `outcomes` | what a handler may raise or return, and what follows for its message |
| `calls` | what a handler takes, and how a body is converted for it |
| `settings` | the options of a container, checked |
| `breaker` | when a container stops consuming because everything fails, and how it finds out that it may go on |
| `plan` | how many workers there are, what they count, and the container's health: nothing here waits |
| `lanes` | one worker's session and consumer |
| `base` | what a worker does with each message, in steps: nothing here waits |
| `workers` | the threads and tasks that take these steps |
| `sync`, `aio` | the two containers |
| `app` | handlers by decorator |
| `running` | a program that only runs containers, and what SIGTERM and Ctrl-C mean for it |
"""

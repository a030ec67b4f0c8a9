--- Take in the single jobs that producers have left in `arrivals`: see arrivals_stream.lua.
-- states   enqueue   none -> ready | blocked : left by its producer, and taken in now
-- keys     arrivals, events streams · specs, clock, lanes hashes · ready, blocked, wake zsets · call strings
--@args     none
-- returns  1 when there was anything · 0 · -1 where the queue must be declared again first, and they lie there
-- Every script that says `--@arrivals` begins with it, so that none of them can tell a job that was left from one
-- that was taken in; what only reads is preceded by this one.
--@flags allow-oom
--@include take_in_arrivals
return take_in_first()

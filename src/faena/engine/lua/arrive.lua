--- Take in the lone jobs that producers have left in `arrivals`: see lib/door.lua.
-- states   -> ready | blocked
-- keys     arrivals, events streams · specs, clock, lanes hashes · ready, blocked, wake zsets · call strings
-- args     none
-- returns  1 when there was anything · 0 · -1 where the queue must be declared again first, and they lie there
-- It runs before every script that says `--@arrivals`, so that none of them can tell a job that was left from
-- one that was taken in; and by itself before those that only read. Whoever has left a job has woken a worker.
--@flags allow-oom
--@sure
--@include read, key, conf, replay, tally, score, lone, arrivals
local MOST = 1000   -- in one round; what is left is taken in by the next

--- The commonest way: one ordinary job, to a worker that waits for it.
local function take_in_one(came, fields)
  local spec, caller = fields[2] or '', fields[3]
  return string.find(spec, '^%d%d%d\n') and caller and turn_of(fields[4])
    and take_in_lone(fields[1], spec, caller, fields[4], '', tonumber(string.match(came, '^%d+')) * 1000)
end

local entries = call('XRANGE', key('arrivals'), '-', '+', 'COUNT', MOST)
if #entries == 1 and take_in_one(entries[1][1], entries[1][2]) then
  call('XTRIM', key('arrivals'), 'MAXLEN', 0)
  return 1
end
local clock = call('HMGET', key('clock'), 'digest', 'stamp', 'enqueued', 'laned')
local conf = conf_of(clock[1])
if not conf.version then
  return -1
end
local jobs, latest = newcomers(entries)
if jobs.number > 0 and is_plain(jobs, count_in(clock[4], 0)) then
  local stamp, number = take_in_plain(jobs, conf, number_in(clock[2], 0))
  call('HSET', key('clock'), 'stamp', stamp, 'enqueued', count_in(clock[3], 0) + number)
elseif jobs.number > 0 then
  take_in_placed(jobs, conf)
end
for caller, id_of_call in pairs(latest) do
  remember(caller, id_of_call, cmsgpack.pack({ jobs.at[jobs.number] }))
end
flush_tally(jobs.at[jobs.number] or 0, conf.events_kept, '')
local left = #entries == MOST and call('XLEN', key('arrivals')) - MOST or 0
call('XTRIM', key('arrivals'), 'MAXLEN', left)
return #entries > 0 and 1 or 0

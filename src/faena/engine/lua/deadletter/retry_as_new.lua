--- Retry dead jobs as new ones that are linked to them.
-- states   retry_as_new  none -> ready | blocked : a new job made of a dead one, which stays dead
-- keys     desk, specs, marks hashes · desk: zsets · ready zset
-- args     now · caller (of this call only) · call · epoch of the shards ('' for the first) · action · reason ·
--          by · priority (at most) · (id · new id) …
-- returns  for each: OK | retried, discarded or resolved (no longer pending) | the state of a job that
--          is not dead | unknown | taken (the new id)
-- refuses  UNCONFIGURED · MOVED (the shards are of another epoch)
--@arrivals
--@include now, conf, replay, tally, retry_as_new, dead_index
local now, conf = now_us(), conf_now()
local answered = replayed(ARGV[2], ARGV[3])
if answered then
  return cmsgpack.unpack(answered)
elseif (conf.epoch or 0) ~= (tonumber(ARGV[4]) or 0) then
  return { 'MOVED' }
elseif not conf.version then
  return { 'UNCONFIGURED' }
end
local why = { action = ARGV[5], reason = ARGV[6], by = ARGV[7], priority = tonumber(ARGV[8]) }
local ids, fresh = {}, {}
context.by = why.by
for i = 9, #ARGV, 2 do
  ids[#ids + 1], fresh[#fresh + 1] = ARGV[i], ARGV[i + 1]
end
local answers = retry_as_new(ids, fresh, records_of(ids), why, conf, now)
remember(ARGV[2], ARGV[3], cmsgpack.pack(answers), ONCE_TTL_S)
return answers

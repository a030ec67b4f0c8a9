--- Jobs that have left this shard and may not have come to another yet: those of the outbox.
-- states   none
-- keys     outbox hash
-- args     now · id … (of those that more is wanted of)
-- returns  for each: id · state · score · packed record of the desk or '' · {} or, if it is wanted, what `look` says
-- A batch stays in the outbox until somebody knows that it has come: what another shard says of a job counts more.
--@flags no-writes
--@include key, luggage
local wanted, found = {}, {}
for i = 2, #ARGV do
  wanted[ARGV[i]] = true
end
local batches = call('HGETALL', key('outbox'))
for i = 2, #batches, 2 do
  for _, job in ipairs(cmsgpack.unpack(string.match(batches[i], '^%d+ (.*)$'))) do
    local look = wanted[job[ID]]
      and { job[STATE], job[SCORE], job[SPEC], job[MARK], '', job[RESULT], job[INFO] } or {}
    found[#found + 1] = { job[ID], job[STATE], job[SCORE], job[DESK] and job[DESK][1] or '', look }
  end
end
return found

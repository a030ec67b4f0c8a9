--- Scan every job of this shard with its lane, a slice at a call.
-- states   none
-- keys     specs hash
-- args     now · cursor · count · lane ('' for all that have one)
-- returns  the next cursor ('0' at the end) · (id · lane) …
--@flags no-writes
--@include key, fact
local scanned = call('HSCAN', key('specs'), ARGV[2], 'COUNT', ARGV[3])
local found, fields = { scanned[1] }, scanned[2]
for i = 1, #fields, 2 do
  local lane = lane_in(fields[i + 1])
  if lane and (ARGV[4] == '' or lane == ARGV[4]) then
    found[#found + 1], found[#found + 2] = fields[i], lane
  end
end
return found

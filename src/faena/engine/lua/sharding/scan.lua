--- Scan every job of this shard with its lane, a slice at a call.
-- states   none
-- keys     specs hash
--@args     cursor, most, lane?
--          lane '' for all that have one
-- returns  the next cursor ('0' at the end) · (id · lane) …
--@flags no-writes
--@include keys, spec_line
local scanned = call('HSCAN', key('specs'), cursor, 'COUNT', most)
local found, fields = { scanned[1] }, scanned[2]
for i = 1, #fields, 2 do
  local its = lane_in(fields[i + 1])
  if its and (lane == '' or its == lane) then
    found[#found + 1], found[#found + 2] = fields[i], its
  end
end
return found

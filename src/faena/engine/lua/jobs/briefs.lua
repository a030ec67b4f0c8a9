--- What some jobs are: their task, and their tenant where they wait in its lane.
-- states   none
-- keys     specs hash
--@args     id...
-- returns  for each: task · lane, both '' when it is unknown
--@flags no-writes
--@include keys, spec_line
local found = {}
for i = first_id, #ARGV do
  local spec = call('HGET', key('specs'), ARGV[i]) or '\n'
  found[#found + 1] = string.match(spec, '\n{"task":"([^"\\]*)"') or ''
  found[#found + 1] = spec ~= '\n' and lane_in(spec) or ''
end
return found

--- Events of this shard behind a position in its stream, and how many there ever were.
-- states   none
-- keys     events stream
--@args     after?, most
--          after is an id, '' for none at all
-- returns  entries ever added · entries kept · id of the first kept · id of the last one ever · whether the position
--          is taken 1|0 · (id · (field · value) …) …
--@flags no-writes
--@include keys
local stream = key('events')
if call('EXISTS', stream) == 0 then
  return { 0, 0, '0-0', '0-0', 0, {} }
end
local info, flat = {}, call('XINFO', 'STREAM', stream)
for i = 1, #flat, 2 do
  info[flat[i]] = flat[i + 1]
end
local first = info['first-entry']
local after = after ~= '' and after or nil
return { info['entries-added'], info['length'], first and first[1] or '0-0', info['last-generated-id'],
  after and #call('XRANGE', stream, after, after) or 0,
  after and call('XRANGE', stream, '(' .. after, '+', 'COUNT', most) or {} }

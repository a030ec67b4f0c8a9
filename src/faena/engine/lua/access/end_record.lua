--- Write how a change ended into the audit trail, once.
-- states   none
-- keys     trail_open hash · trail stream
--@args     id, record
-- returns  1 · 0, if it was written already
--@flags allow-oom
--@include keys
local MOST = 100000   -- the oldest leave first
if call('HDEL', key('trail_open'), id) == 0 then
  return 0
end
call('XADD', key('trail'), 'MAXLEN', '~', MOST, '*', 'r', record)
return 1

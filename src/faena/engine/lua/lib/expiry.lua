--- When live jobs expire, as far as claims must know: see expired.lua.
--@include read, key
--@exports note_expiry
--- A job that expires then has come.
local function note_expiry(at)
  local from = number_in(call('HGET', key('clock'), 'expires_from'))
  if not from or at < from then
    call('HSET', key('clock'), 'expires_from', whole(at))
  end
end

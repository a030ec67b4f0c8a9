--- `expires_from` in the clock: before then no live job expires, and claims need not look; see cancel_expired.lua.
--@include safe_read, keys, clock_fields
--@exports note_expiry, forget_expiry
--- A job that expires then has come.
local function note_expiry(at)
  local from = number_in(call('HGET', key('clock'), 'expires_from'))
  if not from or at < from then
    call('HSET', key('clock'), 'expires_from', whole(at))
  end
end

--- No live job is left that could expire.
local function forget_expiry()
  if clock_of('expires_from') then
    call('HDEL', key('clock'), 'expires_from')
  end
end

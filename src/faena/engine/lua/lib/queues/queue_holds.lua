--- Holds: reason -> "until by at", `until` 0 meaning until released. A queue with any is not served.
--@include keys
--@exports hold, is_held, extend_hold
local function hold(reason, until_at, by, now)
  call('HSET', key('holds'), reason, whole(until_at) .. ' ' .. by .. ' ' .. whole(now))
end

--- A hold whose time is over is none, even before a claim has swept it away.
local function is_held(reason, now)
  local known = call('HGET', key('holds'), reason)
  local until_at = known and tonumber(string.match(known, '^%S+'))
  return until_at == 0 or (until_at and until_at > now)
end

--- Hold until the later of two instants; a hold without end stays one.
local function extend_hold(reason, until_at, now)
  local known = call('HGET', key('holds'), reason)
  local known_until = known and tonumber(string.match(known, '^%S+'))
  if not known_until or (known_until ~= 0 and known_until < until_at) then
    hold(reason, until_at, 'handler', now)
  end
end

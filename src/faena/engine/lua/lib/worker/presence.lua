--- Which workers are there: `workers` by when they are presumed gone, and `about`, what each says of itself.
--   about   worker -> since · pid · version · library of scripts · slots=number · host
--@include keys, safe_read, check_arguments
--@exports sweep_of, sign_in
local GONE_OF_CALL = 100

--- In how many microseconds the worker sweeps again, of what it says with its call; nil where that is empty.
local function sweep_of(sweep)
  local sweep_us = sweep ~= '' and number_in(string.match(sweep, '^%d+'))
  check(sweep == '' or sweep_us and sweep_us <= LATEST, 'a sweep')
  return sweep_us or nil
end

--- A worker is there until an instant, unless it comes again; `sweep` is what it said with its call.
local function sign_in(worker, until_at, sweep, now)
  call('ZADD', key('workers'), until_at, worker)
  local said = string.match(sweep, '^%d+( .+)$')
  local known = said and call('HGET', key('about'), worker) or ''
  if said and string.match(known, '^%d+( .+)$') ~= said then   -- another process may have taken the name
    call('HSET', key('about'), worker, whole(now) .. said)
  end
  local gone = call('ZRANGE', key('workers'), '-inf', now, 'BYSCORE', 'LIMIT', 0, GONE_OF_CALL)
  if #gone > 0 then
    call('ZREM', key('workers'), unpack(gone))
    call('HDEL', key('about'), unpack(gone))
  end
end

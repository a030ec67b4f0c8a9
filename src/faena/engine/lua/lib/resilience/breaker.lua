--- Circuit breakers: one for each upstream, or for each tenant of an upstream.
--   breaker:<scope>   packed, with a TTL; while there is none, it is closed
--     s closed | open | half_open | recovering · u open until · o openings in a row · c bucket, calls, failed, slow, …
--     of the rolling window · k calls, failed, … of the latest calls · p probe -> deadline · w probes that succeeded · t recovering since ·
--     n permits since then · r no calls until: what the upstream itself asked for · a when its state began · e calls, failed, slow
--     of the window that opened it, or of the latest calls, then 1
--   troubled   scope -> state, of breakers that are not closed; workers remove those whose records have expired
--@include safe_read, keys, now, upstream_event, upstream_panic
--@exports scope_of, read_breaker, breaker_of, count_calls, end_probe, no_calls_until, room_of_breaker, use_breaker, facts_of_breaker, end_recovery, drop_expired, save_breakers
--@state breakers = {}   -- scope -> breaker, as read in this call
--@state turned = {}   -- scope, state … of those that have changed
local BUCKETS = 10
local CHUNKS = 10            -- sums of the latest calls
local NEARLY_ALL = 0.9       -- of the latest calls: an outage, though some that began before it still end well
local DOUBLINGS = 10         -- of the permits since it began to recover, until all is as before
local LOOK_AGAIN_US = 1000000
local TROUBLED_S = 30 * 86400
local TTL_US = 3600000000    -- beyond what it waits for
local KINDS = { s = 'string', u = 'number', o = 'number', c = 'table', k = 'table', p = 'table', w = 'number', t = 'number', n = 'number',
                r = 'number', a = 'number', e = 'table' }

--- Which breaker counts for a tenant's calls of an upstream.
local function scope_of(settings, name, tenant)
  return settings.per_tenant and tenant ~= '' and name .. '/@' .. tenant or name
end

--- Make a breaker of what is stored of it; each is read once a call.
local function read_breaker(scope, settings, packed)
  local breaker = keep_kinds(packed and unpacked(packed) or {}, KINDS)
  breaker.scope, breaker.settings, breaker.is_new = scope, settings, not packed
  breaker.s, breaker.o, breaker.w = breaker.s or 'closed', breaker.o or 0, breaker.w or 0
  context.breakers[scope] = breaker
end

local function breaker_of(scope)
  return context.breakers[scope]
end

local function become(breaker, state, now, why, wait_us)
  breaker.s, breaker.c, breaker.k, breaker.p, breaker.w = state, nil, nil, nil, 0
  breaker.a, breaker.is_changed, breaker.has_turned = now, true, true
  local turned = context.turned
  local last = #turned
  turned[last + 1], turned[last + 2] = breaker.scope, state
  tell_upstream('upstream_' .. state, breaker.scope, why, wait_us)
end

--- Each opening in a row lasts twice as long as the one before.
local function open(breaker, now, why)
  local settings = breaker.settings
  breaker.o = breaker.o + 1
  local open_us = math.min(settings.open_us * 2 ^ (breaker.o - 1), settings.longest_us)
  breaker.u = now + open_us
  become(breaker, 'open', now, why, open_us)
  if settings.panic_after and not settings.per_tenant and breaker.o % settings.panic_after == 0 then
    panic_soon(breaker.scope, string.format('the breaker has opened %d times in a row', breaker.o))
  end
end

--- Add calls to the rolling window; returns its sums.
local function add_to_window(breaker, calls, failed, slow, now)
  local width = breaker.settings.window_us / BUCKETS
  local bucket, kept, sums = math.floor(now / width), {}, { calls, failed, slow }
  local counts = breaker.c or {}
  for i = 1, #counts - 3, 4 do
    if counts[i] == bucket then
      calls, failed, slow = calls + counts[i + 1], failed + counts[i + 2], slow + counts[i + 3]
    elseif counts[i] > bucket - BUCKETS then
      for j = 0, 3 do
        kept[#kept + 1] = counts[i + j]
      end
    end
    if counts[i] > bucket - BUCKETS then
      for j = 1, 3 do
        sums[j] = sums[j] + counts[i + j]
      end
    end
  end
  for _, number in ipairs({ bucket, calls, failed, slow }) do
    kept[#kept + 1] = number
  end
  breaker.c, breaker.is_changed = kept, true
  return unpack(sums)
end

--- Add calls to the latest ones, which are `volume` at least, of those inside the window; returns how many they are, and
-- how many of them failed. They are kept in a few sums, so the oldest leave some at a time.
local function add_to_latest(breaker, calls, failed, volume, all)
  local latest, sum, bad = all > calls and breaker.k or {}, 0, 0
  local last = #latest
  if last > 0 and latest[last - 1] < volume / CHUNKS then
    latest[last - 1], latest[last] = latest[last - 1] + calls, latest[last] + failed
  else
    latest[last + 1], latest[last + 2] = calls, failed
  end
  for i = 1, #latest, 2 do
    sum, bad = sum + latest[i], bad + latest[i + 1]
  end
  while #latest > 2 and (sum - latest[1] >= volume or sum > all) do
    sum, bad = sum - latest[1], bad - latest[2]
    table.remove(latest, 1)
    table.remove(latest, 1)
  end
  breaker.k = latest
  return sum, bad
end

--- Calls have ended. Those of an open breaker began before it opened, and tell nothing new.
local function count_calls(breaker, calls, failed, slow, now)
  if calls == 0 or breaker.s == 'open' or breaker.s == 'half_open' then
    return
  end
  local settings = breaker.settings
  local all, bad, late = add_to_window(breaker, calls, failed, slow, now)
  local volume = breaker.s == 'recovering' and math.min(settings.probes, settings.volume) or settings.volume
  local is_slow = settings.slow and late >= settings.slow * all
  local latest, wrong = add_to_latest(breaker, calls, failed, volume, all)
  if all >= volume and (bad > 0 and bad >= settings.errors * all or is_slow) then
    breaker.e = { all, bad, late, 0 }
    open(breaker, now, string.format('%d of %d calls failed%s', bad, all, late > 0 and ', ' .. late .. ' were slow' or ''))
  elseif latest >= volume and wrong >= math.max(NEARLY_ALL, settings.errors) * latest then
    breaker.e = { latest, wrong, 0, 1 }
    open(breaker, now, string.format('%d of the last %d calls failed', wrong, latest))
  end
end

--- A probe has ended: 1 well, 0 not, 2 without a call. One that came back after its deadline counts no more.
local function end_probe(breaker, permit, how, now)
  if breaker.s ~= 'half_open' or not (breaker.p or {})[permit] then
    return
  end
  breaker.p[permit], breaker.is_changed = nil, true
  if how == 2 then
    return
  elseif how == 0 then
    return open(breaker, now, 'a probe failed')
  end
  breaker.w = breaker.w + 1
  if breaker.w >= breaker.settings.probes then
    breaker.t, breaker.n = now, 0
    become(breaker, 'recovering', now, nil, breaker.settings.ramp_us)
  end
end

--- The upstream has asked for no calls until an instant.
local function no_calls_until(breaker, until_at)
  local now = now_us()
  if (breaker.r or 0) <= now then
    tell_upstream('upstream_rate_limited', breaker.scope, nil, until_at - now)
  end
  breaker.r, breaker.is_changed = math.max(breaker.r or 0, until_at), true
end

local function room_of_probes(breaker, now)
  local running, first = 0, now + LOOK_AGAIN_US
  for permit, deadline in pairs(breaker.p or {}) do
    if number_in(deadline, 0) <= now then
      breaker.p[permit], breaker.is_changed = nil, true   -- its holder is gone
    else
      running, first = running + 1, math.min(first, deadline)
    end
  end
  return math.max(1, breaker.settings.probes - breaker.w) - running, 'probing', first   -- fewer may have been declared since
end

--- Close a breaker that has recovered; returns how long it still takes, 0 if it does not recover.
local function end_recovery(breaker, now)
  if breaker.s ~= 'recovering' then
    return 0
  end
  local left_us = (breaker.t or 0) + breaker.settings.ramp_us - now
  if left_us <= 0 then
    breaker.o, breaker.t, breaker.n = 0, nil, nil
    become(breaker, 'closed', now)
  end
  return math.max(left_us, 0)
end

local function room_while_recovering(breaker, now)
  local settings = breaker.settings
  if end_recovery(breaker, now) == 0 then
    return math.huge
  end
  local allowed = math.floor(settings.probes * 2 ^ (DOUBLINGS * (now - breaker.t) / settings.ramp_us) + 1e-8)
  local doublings = math.log((allowed + 1) / settings.probes) / math.log(2)
  return allowed - breaker.n, 'recovering', breaker.t + math.ceil(settings.ramp_us * doublings / DOUBLINGS)
end

--- How many more calls it allows now, else why, and when to ask again.
local function room_of_breaker(breaker, now)
  if breaker.r and breaker.r > now then
    return 0, 'rate_limited', breaker.r
  elseif breaker.s == 'open' and breaker.u > now then
    return 0, 'open', breaker.u
  elseif breaker.s == 'open' then
    become(breaker, 'half_open', now)
  end
  if breaker.s == 'half_open' then
    return room_of_probes(breaker, now)
  elseif breaker.s == 'recovering' then
    return room_while_recovering(breaker, now)
  end
  return math.huge
end

--- So many calls are permitted; those of a half-open breaker are probes, named stem:1, stem:2, …. Returns
-- whether they are.
local function use_breaker(breaker, number, stem, now)
  if breaker.s == 'half_open' then
    breaker.p = breaker.p or {}
    for i = 1, number do
      breaker.p[stem .. ':' .. i] = now + breaker.settings.probe_us
    end
  elseif breaker.s == 'recovering' then
    breaker.n = breaker.n + number
  else
    return false
  end
  breaker.is_changed = true
  return breaker.s == 'half_open'
end

--- For readers: its state, since when, the window's calls, failed and slow ones, or those that opened it and how many failed in a row, if that did; when the next
-- probe goes, openings in a row, and until when the upstream wants no calls (0: none).
local function facts_of_breaker(breaker, now)
  local state, opened, counts = breaker.s, breaker.e or {}, { add_to_window(breaker, 0, 0, 0, now) }
  counts[4] = 0
  if state == 'recovering' and now >= (breaker.t or 0) + breaker.settings.ramp_us then
    state = 'closed'
  elseif state == 'open' or state == 'half_open' then
    counts = { number_in(opened[1], 0), number_in(opened[2], 0), number_in(opened[3], 0), number_in(opened[4], 0) }
  end
  local wait = breaker.r and breaker.r > now and breaker.r or 0
  return { state, breaker.a or 0, counts, state == 'open' and breaker.u or 0, breaker.o, wait }
end

--- Its record has expired, so it is closed, whatever state was told last.
local function drop_expired(scope)
  if call('HDEL', key('troubled'), scope) == 1 then
    tell_upstream('upstream_closed', scope, 'no call for an hour')
  end
end

local function save_breaker(scope, breaker, now, write)
  local record = {}
  for field in pairs(KINDS) do
    record[field] = breaker[field]
  end
  local settings = breaker.settings
  local recovered_at = breaker.t and breaker.t + settings.ramp_us or 0
  local until_at = math.max(breaker.u or 0, breaker.r or 0, recovered_at, now + settings.window_us, now)
  write = breaker.has_turned and call or write   -- features read it when the call ends
  write('SET', key('breaker:' .. scope), cmsgpack.pack(record), 'PX', math.ceil((until_at - now + TTL_US) / 1000))
  if breaker.is_new and not breaker.has_turned then
    drop_expired(scope)
  elseif breaker.has_turned and breaker.s == 'closed' then
    call('HDEL', key('troubled'), scope)
  elseif breaker.has_turned then
    call('HSET', key('troubled'), scope, breaker.s)
    call('EXPIRE', key('troubled'), TROUBLED_S)
  end
end

--- Write what has changed; `write` runs commands last.
local function save_breakers(now, write)
  for scope, breaker in pairs(context.breakers) do
    if breaker.is_changed then
      save_breaker(scope, breaker, now, write)
    end
  end
  save_panics(now)
end

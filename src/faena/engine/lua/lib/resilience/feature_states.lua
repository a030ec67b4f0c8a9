--- Features: what a program does for its users, and whether it can do so now. The state of a feature is the worst
-- that any source says of it; it follows from what is stored, and is told when it has changed.
--   features   f:<feature> settings: critical, fallback, message, upstreams, when_open, check (the state while its
--              health check fails, or '') · l:<level> rules: feature -> state · m:<feature> what was set by hand, and
--              o:<level> a level that is on: s state, m message, b by, a at, u until (0: until it is ended) ·
--              t:<kind> <upstream> trouble that is not the breaker's: a, u · c:<feature> its health check: n failures in
--              a row, x whether they are enough, m message, a since, d due at, o who runs it, l until · s:<feature> as it was told last: s, a; all packed
--@include safe_read, keys, now
--@exports touch_features, feature_trouble, tell_feature, features_by, settle_features, flush_features
--@ending flush_features
--@state features_touched = false   -- something that features depend on has changed in this call
--@state features_by = ''           -- who asked for it
--@state feature_events = {}
local KEPT = 10000
local RANK = { healthy = 0, degraded = 1, offline = 2 }
local KINDS = { s = 'string', m = 'string', b = 'string', a = 'number', u = 'number', n = 'number', x = 'number', d = 'number',
                o = 'string', l = 'number', upstreams = 'table', when_open = 'string', check = 'string', message = 'string',
                fallback = 'string', critical = 'boolean' }

--- What happened to an upstream, or what was declared or set by hand, may change states.
local function touch_features()
  context.features_touched = true
end

--- An upstream has a trouble beside its breaker and a panic, such as `budget`, until an instant (0: until it is ended);
-- without one it is over. Saying the same again changes nothing.
local function feature_trouble(upstream, kind, until_at)
  local field = 't:' .. kind .. ' ' .. upstream
  local packed = call('HGET', key('features'), field)
  local known = packed and keep_kinds(unpacked(packed) or {}, KINDS)
  if until_at and (not known or known.u ~= until_at) then
    call('HSET', key('features'), field, cmsgpack.pack({ a = known and known.a or now_us(), u = until_at }))
    touch_features()
  elseif packed and not until_at then
    call('HDEL', key('features'), field)
    touch_features()
  end
end

local function features_by(who)
  context.features_by = who
end

local function tell_feature(event, name, why)
  local told, last = context.feature_events, #context.feature_events
  told[last + 1], told[last + 2] = event, why and name .. '\n' .. why or name
end

local function read_features()
  local flat, all = call('HGETALL', key('features')), { f = {}, l = {}, m = {}, o = {}, t = {}, c = {}, s = {} }
  for i = 1, #flat, 2 do
    local kind, name = string.match(flat[i], '^(%a):(.+)$')
    local record = all[kind] and unpacked(flat[i + 1])
    if record then
      all[kind][name] = kind == 'l' and record or keep_kinds(record, KINDS)
    end
  end
  return all
end

local function sorted_names(records)
  local names = {}
  for name in pairs(records) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

--- What breakers and panics say of the upstreams that features need: {source, is open, since, until, reason, by} ….
local function troubles_of(all)
  local names, troubles, breakers, fields = {}, {}, {}, {}
  for _, feature in pairs(all.f) do
    for _, name in ipairs(feature.upstreams or {}) do
      if type(name) == 'string' and not troubles[name] then
        troubles[name], names[#names + 1], breakers[#breakers + 1] = {}, name, key('breaker:' .. name)
        fields[#fields + 1], fields[#fields + 2] = name, '!' .. name
      end
    end
  end
  if #names == 0 then
    return troubles
  end
  local found, declared = call('MGET', unpack(breakers)), call('HMGET', key('upstreams'), unpack(fields))
  for i, name in ipairs(names) do
    local breaker = found[i] and unpacked(found[i]) or {}
    local settings = declared[2 * i - 1] and unpacked(declared[2 * i - 1]) or {}
    local panic = declared[2 * i] and unpacked(declared[2 * i])
    local list = troubles[name]
    if panic then
      list[1] = { 'panic:' .. name, true, number_in(panic.at, 0), number_in(panic.until_at, 0), tostring(panic.reason or ''), tostring(panic.by or '') }
    end
    if breaker.s == 'open' or breaker.s == 'half_open' then
      list[#list + 1] = { 'breaker:' .. name, true, number_in(breaker.a, 0), 0, '', '' }
    elseif breaker.s == 'recovering' then
      list[#list + 1] = { 'breaker:' .. name, false, number_in(breaker.a, 0), number_in(breaker.t, 0) + number_in(settings.ramp_us, 0), '', '' }
    end
  end
  for _, named in ipairs(sorted_names(all.t)) do
    local kind, name = string.match(named, '^(%S+) (.+)$')
    local list = name and troubles[name]
    if list then
      list[#list + 1] = { kind .. ':' .. name, true, all.t[named].a or 0, all.t[named].u or 0, '', '' }
    end
  end
  return troubles
end

--- Everything that says something of one feature: {source, state, message, since, until, by, reason} …; and when the
-- last one ended that says nothing more. The message is for users, and only people give one; the reason is why.
local function sources_of(name, feature, all, troubles, now)
  local found, ended_at = {}, 0

  local function add(source, state, message, since, until_at, by, reason)
    if until_at > 0 and until_at <= now then
      ended_at = math.max(ended_at, until_at)
    elseif RANK[state] and state ~= 'healthy' then
      found[#found + 1] = { source, state, message, since, until_at, by, reason }
    end
  end

  local set = all.m[name]
  if set then
    add('operator', set.s, set.m or '', set.a or 0, set.u or 0, set.b or '', '')
  end
  for _, level in ipairs(sorted_names(all.o)) do
    local on, rules = all.o[level], all.l[level] or {}
    add('level:' .. level, rules[name], on.m or '', on.a or 0, on.u or 0, on.b or '', '')
  end
  for _, upstream in ipairs(feature.upstreams or {}) do
    for _, trouble in ipairs(troubles[upstream] or {}) do
      local source, is_open, since, until_at, reason, by = unpack(trouble)
      local state = is_open and (feature.when_open or 'offline') or 'degraded'
      add(source, state, '', since, until_at, by, reason)
    end
  end
  local check = all.c[name]
  if check and check.x == 1 then
    add('check', feature.check, '', check.a or 0, 0, '', check.m or '')
  end
  return found, ended_at
end

--- Write and tell a state that is not the one that was told last; returns it, and since when.
local function tell_state(name, worst, told, ended_at, now)
  local was, state, since = told and told.s or 'healthy', worst and worst[2] or 'healthy', told and told.a or 0
  if state == was then
    return state, since
  end
  since = RANK[state] < (RANK[was] or 0) and ended_at > since and ended_at or now
  call('HSET', key('features'), 's:' .. name, cmsgpack.pack({ s = state, a = since }))
  tell_feature('feature_' .. state, name, 'from=' .. was .. ' to=' .. state .. (worst and ' source=' .. worst[1] or ''))
  return state, since
end

local function drop_ended(all, now)
  for kind, records in pairs({ m = all.m, o = all.o, t = all.t }) do
    for name, record in pairs(records) do
      if (record.u or 0) > 0 and record.u <= now then
        call('HDEL', key('features'), kind .. ':' .. name)
        records[name] = nil
      end
    end
  end
end

--- Bring all states up to date. Returns what is stored, by feature its state, since when and sources, and the
-- instant at which time alone changes the next one (0 for none).
local function settle_features(now)
  local all, states, next_at = read_features(), {}, 0
  local troubles = troubles_of(all)
  for _, name in ipairs(sorted_names(all.f)) do
    local sources, ended_at = sources_of(name, all.f[name], all, troubles, now)
    local worst
    for _, source in ipairs(sources) do
      if not worst or RANK[source[2]] > RANK[worst[2]] then
        worst = source
      end
      if source[5] > 0 and (next_at == 0 or source[5] < next_at) then
        next_at = source[5]
      end
    end
    local state, since = tell_state(name, worst, all.s[name], ended_at, now)
    states[name] = { state, since, sources }
  end
  drop_ended(all, now)
  return all, states, next_at
end

--- At the end of every call: states follow what has changed in it, and listeners learn that something has.
local function flush_features()
  if context.features_touched then
    settle_features(now_us())
  end
  local told = context.feature_events
  if told[1] then
    call('XADD', key('events'), 'MAXLEN', '~', KEPT, '*', 'at', now_us(), 'by', context.features_by, unpack(told))
  end
  if context.features_touched or told[1] then
    publish('features', string.match(told[2] or '', '^[^\n]*'))
  end
end

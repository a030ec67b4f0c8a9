--- Look at all features and levels, and bring states up to date that time alone has changed.
-- states   none
-- keys     features, upstreams hashes · breaker strings · events stream
--@args     none
-- returns  packed: now · when time alone changes the next state, 0 for never · {feature, is_critical, fallback, message,
--          state, since, {{source, state, message, since, until, by, reason} …}} … · {level, {{feature, state} …}, is_on, message,
--          since, until, by} …
--@flags allow-oom
--@include now, feature_states
local all, states, next_at = settle_features(now)
local features, levels = {}, {}
for name, state in pairs(states) do
  local settings = all.f[name]
  features[#features + 1] = {
    name, settings.critical == true, settings.fallback or '', settings.message or '', state[1], state[2], state[3],
  }
end
for name, rules in pairs(all.l) do
  local on, flat = all.o[name], {}
  for feature, state in pairs(rules) do
    flat[#flat + 1] = { feature, state }
  end
  levels[#levels + 1] = { name, flat, on ~= nil, on and on.m or '', on and on.a or 0, on and on.u or 0, on and on.b or '' }
end
return cmsgpack.pack({ now, next_at, features, levels })

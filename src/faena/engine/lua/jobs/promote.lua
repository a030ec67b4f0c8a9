--- Run delayed jobs now.
-- states   promote   delayed -> ready | blocked : somebody said now
-- keys     delayed, ready zsets · wake zset
-- args     now · caller (of this call only) · call · by (or empty) · id …
-- returns  for each: promoted | the state it is in | unknown
-- refuses  UNCONFIGURED
--@flags allow-oom
--@arrivals
--@include now, conf, replay, state, tally, due, wake
local now, conf = now_us(), conf_now()
local answered = replayed(ARGV[2], ARGV[3])
if answered then
  return cmsgpack.unpack(answered)
elseif not conf.version then
  return { 'UNCONFIGURED' }
end
context.by = ARGV[4]
local answers, promoted, instants = {}, {}, {}
for i = 5, #ARGV do
  local state = state_of(ARGV[i])
  if state == 'delayed' then
    promoted[#promoted + 1] = ARGV[i]
    instants[#instants + 1] = now
    state = 'promoted'
  end
  answers[#answers + 1] = state or 'unknown'
end
if #promoted > 0 then
  make_ready(promoted, instants, conf)
  arm_wake()
  tell('promoted', promoted)
  remember(ARGV[2], ARGV[3], cmsgpack.pack(answers), ONCE_TTL_S)
end
return answers

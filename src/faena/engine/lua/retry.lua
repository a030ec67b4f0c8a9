--- Run finished jobs again, with fresh attempts and at their own priority.
-- states   dead | cancelled | completed -> ready | blocked
-- keys     dead, cancelled, completed, ready zsets · results, marks hashes
-- args     now · caller (of this call only) · call · id …
-- returns  for each: ready (also when it was before) | blocked (in its chain) | the state that forbids
--          it | unknown
-- refuses  UNCONFIGURED
--@include now, conf, replay, state, score, mark, wake, tally, weigh, place
local now, conf = now_us(ARGV[1]), conf_now()
local answered = replayed(ARGV[2], ARGV[3])
if answered then
  return cmsgpack.unpack(answered)
elseif not conf.version then
  return { 'UNCONFIGURED' }
end
local answers, retried = {}, {}

--- Errors, log and changed priority stay with the job; attempts, losses and claims do not.
local function start_over(id, state)
  local mark, spec = marks_of({ id })[id], call('HGET', key('specs'), id)
  if conf[state .. '_bytes'] then
    weigh_out(state, { id })
  end
  call('ZREM', key(state), id)
  call('HDEL', key('results'), id)
  if mark and (mark.i or mark.p) then
    save_mark(id, { i = mark.i, p = mark.p })
  elseif mark then
    call('HDEL', key('marks'), id)
  end
  local lane, chain = lane_in(spec)
  if lane then
    count_lane(lane, 1, 0)
  end
  local score = chain and fresh_stamp(now) or score_of(conf, now, priority_of(spec, mark), 0)
  place({ { id = id, score = score, lane = lane, chain = chain } })
end

for i = 4, #ARGV do
  local id = ARGV[i]
  local state = state_of(id)
  if state == 'dead' or state == 'cancelled' or state == 'completed' then
    start_over(id, state)
    retried[#retried + 1] = id
    state = state_of(id)
  end
  answers[#answers + 1] = state or 'unknown'
end
if #retried > 0 then
  arm_wake()
  remember(ARGV[2], ARGV[3], cmsgpack.pack(answers), ONCE_TTL_S)
end
tell('redriven', retried)
flush_lanes()
flush_tally(now, conf.events_kept, '')
return answers

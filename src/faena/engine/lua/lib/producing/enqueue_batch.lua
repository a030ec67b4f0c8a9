--- Decide and store a batch of new jobs.
-- Ordinary jobs pile up and are written in columns; an item that must look at other jobs (a unique
-- claim, an id seen before) first writes the pile, so that it looks at the truth. The loop over a
-- batch is hot: lengths are counted, because `#` searches, and scores' offsets are kept by priority.
--@include safe_read, check_arguments, keys, event_and_stats, job_metadata, score, wake_worker, spec_line, waiting
--@include tenant_override, expires_from, lane, job_state
--@exports judge_all, new_intake, answer, write_pile, close_intake, admit, delay_of, expiry_of, add
--@exports refused
local MAX_DELAY_US = 5000000   -- for a queue whose bounds were set at run time without a delay

local TIMES = { 'delay', 'at', 'expires', 'lasts', 'ttl', 'by' }
local MODES = { waiting = true, live = true, throttle = true, debounce = true, last = true }

--- A number among the facts of a job, if it is there.
local function is_time(text)
  local number = number_in(text)
  return text == nil or number and number >= 0 and number <= 2 ^ 53
end

--- Judge what a call brings, id and spec from argument `first` on, before anything of it is written.
local function judge_specs(first)
  for i = first + 1, #ARGV, 2 do
    local facts = facts_in(ARGV[i])
    check(string.find(ARGV[i], '^%d%d%d[ \n]'), 'a priority')
    for _, name in ipairs(TIMES) do
      check(is_time(facts[name]), name)
    end
    check(not facts.unique or MODES[facts.mode] and (facts.mode ~= 'throttle' or number_in(facts.ttl, 0) >= 1),
      'a unique claim')
  end
end

--- The first item of a call that writes before the others are looked at has all of them judged.
local function judge_all(intake)
  if intake.first then
    judge_specs(intake.first)
    intake.first = nil
  end
end

local function empty_pile()
  return { columns = {}, jobs = 0, ready = {}, readied = 0, delayed = {}, put_off = 0, placed = {}, marked = {} }
end

local function new_intake(conf, now)
  local clock = call('HMGET', key('clock'), 'stamp', 'enqueued', 'laned')
  local stamp, enqueued = number_in(clock[1], 0), count_in(clock[2], 0)
  local depth = 0
  if conf.soft or conf.hard then
    depth = live_jobs()
  end
  return { conf = conf, now = now, stamp = math.max(stamp, now), enqueued = enqueued, depth = depth,
           seen = {}, created = {}, admitted = 0, replaced = {}, offsets = {}, pile = empty_pile(),
           lanes = {}, is_laned = count_in(clock[3], 0) > 0, marks = {}, answers = { now } }
end

local function answer(intake, index, code, first, second)
  local list = intake.answers
  list[#list + 1] = index
  list[#list + 1] = code
  list[#list + 1] = first
  list[#list + 1] = second or ''
end

--- Write the pile; one command a column.
local function write_pile(intake)
  local pile = intake.pile
  if pile.jobs == 0 then
    return
  end
  call('HSET', key('specs'), unpack(pile.columns))
  save_marks(pile.marked, intake.marks)
  if pile.readied > 0 then
    call('ZADD', key('ready'), unpack(pile.ready))
    wake_worker()
  end
  if #pile.placed > 0 then
    start_waiting(pile.placed)
    wake_worker()
  end
  if pile.put_off > 0 then
    local first = call('ZRANGE', key('delayed'), 0, 0)[1]
    call('ZADD', key('delayed'), unpack(pile.delayed))
    if call('ZRANGE', key('delayed'), 0, 0)[1] ~= first then
      wake_worker()   -- an idle worker must learn that something is due earlier than it knows
    end
  end
  intake.pile = empty_pile()
end

--- Write what is left, and what the whole batch came to.
local function close_intake(intake)
  write_pile(intake)
  if intake.admitted > 0 then
    call('HSET', key('clock'), 'stamp', intake.stamp, 'enqueued', intake.enqueued + intake.admitted)
    record_event('enqueued', intake.created)
    record_event('replaced', intake.replaced)
    if intake.expires then
      note_expiry(intake.expires)
    end
  end
end

local function admit(intake, id, spec)
  local number = intake.admitted + 1
  intake.admitted = number
  intake.created[number] = id
  intake.seen[id] = spec
  intake.depth = intake.depth + 1
end

--- What a job's priority adds to its stamp.
local function offset_of(intake, spec)
  local digits = string.sub(spec, 1, 3)
  local offset = intake.offsets[digits]
  if not offset then
    check(string.find(digits, '^%d%d%d$'), 'a priority')
    offset = score_of(intake.conf, 0, tonumber(digits), 0)
    intake.offsets[digits] = offset
  end
  return offset
end

--- After how long a job may run, or nil; an instant that is past is no wait.
local function delay_of(intake, facts)
  return facts.at and tonumber(facts.at) - intake.now or tonumber(facts.delay)
end

--- From when on no attempt of a job is started, or nil.
local function expiry_of(intake, facts)
  local at = facts.lasts and intake.now + tonumber(facts.lasts) or tonumber(facts.expires)
  intake.expires = at and math.min(at, intake.expires or at) or intake.expires
  return at
end

--- Whom a job tells of its end; for an outbox with its digest, which is left when it is gone.
local function told_by(facts)
  return string.sub(facts.tells or '', 1, 2) == 'o:' and facts.tells .. (facts.digest or '') or facts.tells
end

local function add(intake, id, spec, delay, facts)
  local pile, lane, chain = intake.pile, facts.lane, facts.chain
  admit(intake, id, spec)
  if lane then
    count_lane(lane, 1, 0)
    intake.is_laned = true
  end
  local expires, since = expiry_of(intake, facts), delay and delay > 0 and intake.now or nil
  if (facts.tells or expires or since) and (not facts.unique or facts.mode == 'throttle') then
    pile.marked[#pile.marked + 1], intake.marks[id] = id, { w = told_by(facts), e = expires, q = since }
  end
  local jobs = pile.jobs + 1
  pile.jobs = jobs
  pile.columns[2 * jobs - 1], pile.columns[2 * jobs] = id, spec
  if delay and delay > 0 then
    local last = 2 * pile.put_off
    pile.put_off = pile.put_off + 1
    pile.delayed[last + 1], pile.delayed[last + 2] = intake.now + delay, id
  elseif lane or chain or intake.is_laned or context.laned_change > 0 then   -- see share_lane
    local stamp = intake.stamp + 1
    intake.stamp, pile.joins = stamp, pile.joins or not (lane or chain)
    pile.placed[#pile.placed + 1] = {
      id = id, lane = lane, chain = chain, score = chain and stamp or stamp + offset_of(intake, spec),
    }
  else
    local last, stamp = 2 * pile.readied, intake.stamp + 1
    intake.stamp, pile.readied = stamp, pile.readied + 1
    pile.ready[last + 1], pile.ready[last + 2] = stamp + offset_of(intake, spec), id
  end
end

--- Answer for a depth: true when it refuses, 'slowed' when it suggests a delay that grows from
-- `soft` on.
local function press(intake, index, depth, soft, hard, scope)
  local longest = intake.conf.max_delay_us or MAX_DELAY_US
  if hard and depth >= hard then
    answer(intake, index, scope .. 'OVERLOADED', longest, depth)
    count('overloaded', 1)
    return true
  end
  if soft and depth >= soft then
    local ratio = hard and (depth - soft) / (hard - soft) or 1
    answer(intake, index, scope .. 'SLOWED', math.floor(ratio * longest), depth)
    count('slowed', 1)
    return 'slowed'
  end
  return false
end

local function has_overrides(intake)
  if intake.has_overrides == nil then
    intake.has_overrides = call('EXISTS', key('tenants')) == 1
  end
  return intake.has_overrides
end

--- The live jobs of a lane, those of this batch among them.
local function lane_depth(intake, lane)
  if lane == COMMON and intake.pile.joins then
    judge_all(intake)
    write_pile(intake)   -- which tells who shares the lane
  end
  local known = intake.lanes[lane]
  if not known then
    judge_all(intake)   -- an override that has ended is removed
    known = { live = math.floor(count_in(call('HGET', key('lanes'), lane), 0) / LIVE),
              size = (controls_of({ lane }, intake.now)[lane] or {}).size }
    intake.lanes[lane] = known
  end
  return known.live + math.floor((context.lane_changes[lane] or 0) / LIVE), known.size
end

--- Back-pressure of the queue, and of the tenant where its lane is bounded.
local function refused(intake, index, lane)
  local conf = intake.conf
  local pressed = press(intake, index, intake.depth, conf.soft, conf.hard, '')
  if pressed == true then
    return true
  elseif lane and (conf.tenant_soft or conf.tenant_hard or has_overrides(intake)) then
    local depth, size = lane_depth(intake, lane)
    local soft, hard = conf.tenant_soft, size or conf.tenant_hard
    soft = pressed ~= 'slowed' and soft and (not hard or soft < hard) and soft or nil
    return press(intake, index, depth, soft, hard, 'TENANT_') == true
  end
  return false
end

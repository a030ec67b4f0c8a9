--- Decide and store a batch of new jobs.
-- Ordinary jobs pile up and are written in columns; an item that must look at other jobs (a unique
-- claim, an id seen before) first writes the pile, so that it looks at the truth. The loop over a
-- batch is hot: lengths are counted, because `#` searches, and scores' offsets are kept by priority.
--@include key, tally, mark, score, wake
local MAX_DELAY_US = 5000000   -- for a queue whose bounds were set at run time without a delay

local function empty_pile()
  return { columns = {}, jobs = 0, ready = {}, readied = 0, delayed = {}, put_off = 0 }
end

local function new_intake(conf, now)
  local clock = call('HMGET', key('clock'), 'stamp', 'enqueued')
  local stamp, enqueued = tonumber(clock[1] or 0), tonumber(clock[2] or 0)
  local depth = 0
  if conf.soft or conf.hard then
    depth = call('ZCARD', key('ready')) + call('ZCARD', key('delayed')) + call('ZCARD', key('blocked'))
      + call('ZCARD', key('running'))
  end
  return { conf = conf, now = now, stamp = math.max(stamp, now), enqueued = enqueued, depth = depth,
           seen = {}, created = {}, admitted = 0, offsets = {}, pile = empty_pile(), answers = { now } }
end

local function answer(intake, index, code, first, second)
  local list = intake.answers
  list[#list + 1] = index
  list[#list + 1] = code
  list[#list + 1] = first
  list[#list + 1] = second or ''
end

--- The facts of an envelope; an ordinary one has none.
local function facts_in(spec)
  local facts = {}
  if string.byte(spec, 4) ~= 10 then
    for name, value in string.gmatch(string.match(spec, '^[^\n]*'), '(%w+)=(%S+)') do
      facts[name] = value
    end
  end
  return facts
end

--- Write the pile; one command a column.
local function write_pile(intake)
  local pile = intake.pile
  if pile.jobs == 0 then
    return
  end
  call('HSET', key('specs'), unpack(pile.columns))
  if pile.readied > 0 then
    call('ZADD', key('ready'), unpack(pile.ready))
    arm_wake()
  end
  if pile.put_off > 0 then
    local first = call('ZRANGE', key('delayed'), 0, 0)[1]
    call('ZADD', key('delayed'), unpack(pile.delayed))
    if call('ZRANGE', key('delayed'), 0, 0)[1] ~= first then
      arm_wake()   -- an idle worker must learn that something is due earlier than it knows
    end
  end
  intake.pile = empty_pile()
end

--- Write what is left, and what the whole batch came to.
local function close_intake(intake)
  write_pile(intake)
  if intake.admitted > 0 then
    call('HSET', key('clock'), 'stamp', intake.stamp, 'enqueued', intake.enqueued + intake.admitted)
    tell('enqueued', intake.created)
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
    offset = score_of(intake.conf, 0, tonumber(digits), 0)
    intake.offsets[digits] = offset
  end
  return offset
end

local function add(intake, id, spec, delay)
  local pile = intake.pile
  admit(intake, id, spec)
  local jobs = pile.jobs + 1
  pile.jobs = jobs
  pile.columns[2 * jobs - 1], pile.columns[2 * jobs] = id, spec
  if delay and delay > 0 then
    local last = 2 * pile.put_off
    pile.put_off = pile.put_off + 1
    pile.delayed[last + 1], pile.delayed[last + 2] = intake.now + delay, id
  else
    local last, stamp = 2 * pile.readied, intake.stamp + 1
    intake.stamp, pile.readied = stamp, pile.readied + 1
    pile.ready[last + 1], pile.ready[last + 2] = stamp + offset_of(intake, spec), id
  end
end

--- Back-pressure by depth: refuse at `hard`, suggest a growing delay from `soft` on.
local function refused(intake, index)
  local conf, depth = intake.conf, intake.depth
  local longest = conf.max_delay_us or MAX_DELAY_US
  if conf.hard and depth >= conf.hard then
    answer(intake, index, 'OVERLOADED', longest, depth)
    count('overloaded', 1)
    return true
  end
  if conf.soft and depth >= conf.soft then
    local ratio = conf.hard and (depth - conf.soft) / (conf.hard - conf.soft) or 1
    answer(intake, index, 'SLOWED', math.floor(ratio * longest), depth)
    count('slowed', 1)
  end
  return false
end

--- Ready jobs without a lane, where others have one, join the common lane. They came before the queue had lanes, or ran
-- meanwhile and were put back. Claims walk through `ready`, a few places each, and have them join the common
-- lane, so that after some claims there are none, whatever jobs are before them.
--   walked        in the clock: the score that the walk has come to
--   walked_ties   how many jobs of just that score it has seen
--@include keys, clock_fields, spec_line, lane, waiting, claimed_specs
--@exports join_common_lane
local LOOKED_AT, LOOKS = 100, 5   -- jobs at once; as often as that, until a claim's worth has joined

local function laneless_now()
  return call('ZCARD', key('ready')) - laned_now()
end

local function places_before(score)
  return call('ZCOUNT', key('ready'), '-inf', string.format('(%.17g', score))
end

--- Those among the next jobs from a rank on join. Returns how many were looked at, the last one's score, how
-- many have joined, and the bytes that were read.
local function join_from(rank)
  local found, ids = call('ZRANGE', key('ready'), rank, rank + LOOKED_AT - 1, 'WITHSCORES'), {}
  for i = 1, #found, 2 do
    ids[#ids + 1] = found[i]
  end
  local items, theirs, bytes = {}, {}, 0
  for i, spec in ipairs(#ids > 0 and call('HMGET', key('specs'), unpack(ids)) or {}) do
    bytes = bytes + #(spec or '')
    if not lane_in(spec) then
      count_lane(COMMON, spec and 0 or 1, 0)   -- one that has lost its spec is served as well
      items[#items + 1], theirs[#theirs + 1] = { id = ids[i], score = found[2 * i], lane = COMMON }, spec
    end
  end
  write_common(items, theirs)
  enter_lanes(items)
  return #ids, tonumber(found[#found]), #items, bytes
end

--- The next walk begins at the first job.
local function end_walk()
  if clock_of('walked') then
    call('HDEL', key('clock'), 'walked', 'walked_ties')
  end
  return false
end

--- No job may join a lane that moves to another shard.
local function is_common_moving()
  return clock_of('moving') > 0 and call('HEXISTS', key('moves'), COMMON) == 1
end

--- Walk on for a claim of `number` jobs; tells whether there is more to look at.
local function join_common_lane(number)
  if laneless_now() < 1 then
    return end_walk()
  elseif is_common_moving() then
    return false
  end
  local walked, joined, bytes = clock_of('walked'), 0, 0
  local rank, score = walked and places_before(walked) + clock_of('walked_ties') or 0, nil
  for _ = 1, LOOKS do
    local seen, last, found, read = join_from(rank)
    if seen < LOOKED_AT or laneless_now() < 1 then
      return end_walk()
    end
    rank, score, joined, bytes = rank + seen, last, joined + found, bytes + read
    if joined >= number or bytes > CLAIMED_BYTES then
      break
    end
  end
  call('HSET', key('clock'), 'walked', string.format('%.17g', score), 'walked_ties', rank - places_before(score))
  return true
end

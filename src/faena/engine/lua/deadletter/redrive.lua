--- Advance a redrive by one slice: retry the next dead jobs that it is about, and note how far it is.
-- states   retry_as_new  none -> ready | blocked : new jobs made of dead ones, which stay dead
-- keys     redrives, desk, specs, marks hashes · dead, desk:, ready zsets
--@args     caller, id_of_call, epoch?, id, priority, fresh...
--          epoch of the shards, '' for the first; priority at most; as many fresh ids as may be retried
-- returns  state · retried now · us to wait (for the rate, for room, for canaries) · ended 1|0 (nothing is
--          left) · canaries that are not finished · packed record
-- refuses  UNCONFIGURED · MOVED (the shards are of another epoch) · OVERTAKEN · unknown
--@arrivals
--@include now, replay, job_state, retry_dead_as_new, desk_walk, redrive_record, run_once
local LOOKED = 200             -- jobs of the desk that one call looks at
local PATIENCE_US = 1000000    -- until the driver looks again for room, or for canaries
local conf, answer = begin_once(caller, id_of_call, epoch)
if not conf then
  return answer
end
local redrive = redrive_of(id)
if not redrive then
  return { 'unknown' }
end

--- How many canaries are not finished; one that did not complete ends the redrive.
local function watch_canaries()
  local waiting = 0
  for _, first in ipairs(redrive.first) do
    local state = state_of(first)
    if state == 'dead' or state == 'cancelled' then
      end_redrive(redrive, 'failed', now)
    elseif state and state ~= 'completed' then
      waiting = waiting + 1
    end
  end
  return waiting
end

--- How many may be retried now: what was asked for, the rate's worth of a second, and what is room for.
local function allowed()
  local most = #ARGV - first_fresh + 1
  if not is_under_way(redrive) or redrive.due_at > now then
    return 0
  end
  if redrive.state == 'canary' then   -- of two drivers one may not know of the other's yet
    most = math.min(most, redrive.canary - #redrive.first)
  end
  if redrive.max then
    most = math.min(most, math.max(1, math.floor(redrive.max * 1000000 / redrive.per_us)), redrive.max)
  end
  if conf.hard then
    most = math.min(most, conf.hard - live_jobs())
  end
  return math.max(most, 0)
end

--- Returns how many were retried, and whether nothing is left.
local function advance(most)
  local ids, fresh, records = {}, {}, {}
  local from = { score = redrive.score, id = redrive.last, least = redrive.from_at or 0,
                 most = redrive.until_at }
  redrive.filter.status = 'pending'
  local score, last, is_over = walk_desk(redrive.filter, from, LOOKED, most, function(job, _, record)
    if #ids == most then
      return false
    end
    ids[#ids + 1], fresh[#fresh + 1], records[job] = job, ARGV[first_fresh + #ids], record
  end)
  local why = { action = 'redrive', reason = redrive.reason, by = redrive.by, priority = tonumber(priority),
                redrive = id }
  local _, made = retry_dead_as_new(ids, fresh, records, why, conf, now)
  redrive.score, redrive.last, redrive.moved = score, last, redrive.moved + #made
  if redrive.max then
    redrive.due_at = math.max(now, redrive.due_at) + math.ceil(#made * redrive.per_us / redrive.max)
  end
  for _, first in ipairs(redrive.state == 'canary' and made or {}) do
    table.insert(redrive.first, first.fresh)
  end
  return #made, is_over
end

local waiting = redrive.state == 'canary' and watch_canaries() or 0
local most, moved, is_over = allowed(), 0, false
if most > 0 then
  moved, is_over = advance(most)
end
if is_over and redrive.state == 'running' then
  end_redrive(redrive, 'done', now)
end
save_redrive(id, redrive)
-- the rate is the queue's: the driver waits also between one shard and the next
local wait = redrive.due_at > now and redrive.due_at - now
  or is_under_way(redrive) and most == 0 and PATIENCE_US or 0
answer = { redrive.state, moved, wait, is_over and 1 or 0, waiting, cmsgpack.pack(redrive) }
remember(caller, id_of_call, cmsgpack.pack(answer))
return answer

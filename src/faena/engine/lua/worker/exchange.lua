--- Settle finished jobs and claim new ones in one call.
-- states   complete  running -> completed : the handler returned
--          retry     running -> delayed | ready : it failed and may try again
--          snooze    running -> delayed | ready : not now; no attempt is used
--          bury      running -> dead : out of attempts, discarded or unreadable
--          cancel    running -> cancelled : called off while it ran, or expired
--          hook      none -> ready : a hook of a job that failed or died
--          rescue    running -> ready | dead : its lease ran out; dead when that happened too often
--          unblock   blocked -> ready | delayed : what it waited for is over
--          promote   delayed -> ready | blocked : its instant has come
--          expire    ready | blocked -> cancelled : its turn came too late
--          claim     ready -> running : a worker takes a lease
--          prune     completed | dead | cancelled -> none : retention has ended
-- keys     leases, specs, marks, results hashes · ready, delayed, running, completed, dead, cancelled
--          zsets · holds hash · window lists · wake, workers zsets · about hash · events stream
--@args     caller, lease, worker, want, sweep?, samples?, least_us, plain, kept, settled...
--          lease is the id of the call; sweep the us until the next, and what the worker says of itself, '' when this
--          is none; samples are packed, see minutes.lua; leases last least_us at least. Settled are so many
--          id · lease as are plain (completed without a result), so many id · lease · result as are kept, and then
--          id · lease · kind · number · said · note …: see settle_other_outcomes.lua
-- returns  now · next_at (0: nothing to wait for) · gate · more 1|0, and 2 for mail · lost ids · (id · score) … ·
--          specs · (id · attempts · losses · changed priority) … of marked jobs · {id · task · tenant ·
--          losses} … where jobs of others died of lost deliveries · {id · attempts} … where jobs had expired
--          (neither when a call is repeated) · when they were claimed, where that is not now: in a call that is repeated
-- refuses  UNCONFIGURED · OVERTAKEN
--@flags allow-oom
--@sure
--@include now, hand_over, check_arguments, queue_settings, replay, event_and_stats, settle, claim_gates, claim
--@include cancel_expired, key_limit, wake_worker, exchange_upkeep, outbox, presence, idle_queue, replay_exchange
--@include take_in_arrivals, clock_fields, keys, lane, safe_read, settle_other_outcomes, queue_rate_limits, expires_from
local PRESENCE_US = 30000000   -- a worker signs in at every sweep, whatever its leases
local PRUNED = 50               -- beyond as many as end, so that a backlog of finished jobs shrinks
local CLAIMED_WHEN_BUSY = 50    -- when the call has brought many jobs back as well

local is_claim = want ~= '0' and sweep == '' and samples == '' and #ARGV < first_settled
local want, sweep_us, least_us = size_of(want, 'want'), sweep_of(sweep), instant_of(least_us, 'least_us')
local plain, kept = size_of(plain, 'plain'), size_of(kept, 'kept')
local samples = samples ~= '' and unpacked(samples) or {}
local first_item = first_settled + 2 * plain + 3 * kept
check(caller and is_word(lease) and is_word(worker), 'caller, lease and worker')
check(first_item <= #ARGV + 1 and (#ARGV + 1 - first_item) % 6 == 0, 'settlements')
local handed, is_empty
if is_claim then
  handed, is_empty = hand_over(caller, lease, worker, now, least_us)
end
if handed then
  return handed
elseif not is_empty then
  take_in()
end
local answered, overtaken = replayed(caller, lease)
if answered then
  return replay_exchange(cmsgpack.unpack(answered), lease, now)
elseif overtaken then
  return { 'OVERTAKEN' }
end
local conf = conf_of(clock_of('digest'))
if not conf.version or conf.unserved then   -- who claims knows which hooks there are: see configure.lua
  return { 'UNCONFIGURED' }
end
-- A worker renews at a pace that code gave it; a lease edited to be shorter must not end before.
local lease_us = math.max(conf.lease_us, least_us)

local done, leases, results, items = {}, {}, {}, {}
local number, at = plain + kept, first_settled
for i = 1, plain do
  done[i], leases[i] = ARGV[at], ARGV[at + 1]
  at = at + 2
end
for i = plain + 1, number do
  done[i], leases[i], results[i] = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  at = at + 3
end
for i = first_item, #ARGV, 6 do
  items[#items + 1] = { id = ARGV[i], lease = ARGV[i + 1], kind = ARGV[i + 2],
                        number = instant_of(ARGV[i + 3], 'a number'), said = ARGV[i + 4], note = ARGV[i + 5] }
  check(is_outcome(ARGV[i + 2]), 'a kind of ending')
end
local lost = settle(done, leases, results, items, conf, now)

local slice = PRUNED + number + #items
look_if_only_ready(number + #items)
local due_at, ends_at, is_busy, losses = upkeep(conf, now, slice, sweep_us)
want = is_busy and math.min(want, CLAIMED_WHEN_BUSY) or want
local lane_at = laned_now() > 0 and unpark_due(now, sweep_us) or nil
if laned_now() > 0 and aside_now() > 0 then
  put_back_due(conf, now)
end
local grant, gate, opens_at = allowed(want, conf, now)
local popped, specs, facts, ids, is_cut, costs_at = claim(grant, lease, worker, now, lease_us, conf)
if #ids > 0 and conf.limits then
  spend_limits(conf.limits, now, #ids)
end
local expired = end_expired(worker, conf, now)
if expired then   -- others may stand behind them, or have waited for them
  is_cut, due_at = true, first_score('delayed')
end

gate = is_cut and '' or gate   -- what it left is free to be claimed at once
if costs_at then
  gate, opens_at = 'limit', costs_at   -- the next job costs more than is left of a limit
end
local left = is_cut or costs_at or is_work_left(#ids, grant)
local more = left and gate == ''
if more then
  wake_worker()   -- another worker could claim what this one leaves
elseif not left then
  call('DEL', key('wake'))   -- nothing is left to wake up for, and the caller knows what is due
end
-- a lease that was made shorter at run time may end before the older ones
ends_at = math.min(ends_at or math.huge, #ids > 0 and now + lease_us or math.huge)
if laned_now() > 0 then
  local parked_at = first_score('parked')
  lane_at = parked_at and parked_at < FULL and parked_at or nil
  lane_at = aside_now() > 0 and math.min(lane_at or math.huge, first_score('aside') or math.huge) or lane_at
end
local next_at = math.min(due_at or math.huge, ends_at, left and opens_at or math.huge, lane_at or math.huge)
next_at = next_at == math.huge and 0 or math.max(next_at, now)
more = more and (is_cut or #ids == want) and 1 or 0
if next_at == 0 and not left and laned_now() == 0 then
  forget_expiry()
end
if context.has_messages or sweep_us and call('EXISTS', key('recipients'), key('pending_sends')) > 0 then
  more = more + 2
end

count_tasks(samples)
if sweep_us then
  sign_in(worker, now + math.max(2 * lease_us, 2 * sweep_us, PRESENCE_US), sweep, now)
end
context.worker = worker
remember(caller, lease, cmsgpack.pack({ lost, ids, next_at, gate, more }))
return { now, next_at, gate, more, lost, popped, specs, facts, losses or expired and {}, expired }

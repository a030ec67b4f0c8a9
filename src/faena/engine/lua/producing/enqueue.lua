--- Take in 1..1000 jobs.
-- states   enqueue   none -> ready | delayed | blocked : at once, later, or behind others in an order
--          replace   ready | delayed | blocked -> none : a job with the same unique claim takes its place
--          unblock   blocked -> ready : what it waited for is over
-- keys     specs hash · ready, delayed, blocked zsets · unique strings · wake zset · events stream
--@args     caller, id_of_call, epoch?, id spec...
--          epoch of the shards, '' for the first
-- returns  now, then for each item that is not plainly created: number, code, detail, detail
--          DUPLICATE id state · CONFLICT id state · OVERLOADED retry_us depth · SLOWED delay_us depth
--          · the same two of its tenant, TENANT_… · REPLACED id state · LATE now
--          · MEMBER id state, a DUPLICATE that tells the same group
-- refuses  UNCONFIGURED · OVERTAKEN · MOVED (the shards have changed since that epoch)
-- A spec begins with its envelope: three digits of priority, then ` name=value` facts (lane, chain,
-- delay or at, expires or lasts, digest, unique, mode, ttl, tells, by), then a newline. What follows is the producer's and is never read here.
--@sure
--@arrivals
--@include now, check_arguments, queue_settings, replay, enqueue_batch, answer_duplicate, enqueue_unique, send_once
--@include enqueue_one, arrivals_stream, wake_worker, spec_line, keys
local first_spec = first_id + 1
if #ARGV == first_spec and string.byte(ARGV[first_spec], 4) == 10 then
  local answers, conf = enqueue_one(ARGV[first_id], ARGV[first_spec], caller, id_of_call, epoch, now)
  if answers then
    wake_worker()
    if is_now() then
      open_arrivals(conf)   -- by the server's clock alone: what is left there has no other
    end
    return answers
  end
end
local answered, overtaken = replayed(caller, id_of_call)
if answered then
  return cmsgpack.unpack(answered)
elseif overtaken then
  return { 'OVERTAKEN' }
end
local conf = conf_now()
if conf.epoch and conf.epoch > (tonumber(epoch) or 0) then
  return { 'MOVED' }   -- also where this shard was retired: it must not be declared anew
elseif not conf.version then
  return { 'UNCONFIGURED' }
end

local number, ids, is_bounded = (#ARGV - first_id + 1) / 2, {}, conf.soft or conf.hard
check(caller and id_of_call and number % 1 == 0 and number >= 1 and number <= 5000, 'jobs')
for i = 1, number do
  ids[i] = ARGV[first_id + 2 * i - 2]
end
local known = call('HMGET', key('specs'), unpack(ids))
local intake, NONE = new_intake(conf, now), {}
intake.first = first_id
for i = 1, number do
  local id, spec = ids[i], ARGV[first_id + 2 * i - 1]
  local before = known[i] or intake.seen[id]
  if before then
    answer_duplicate(intake, i, id, spec, before)
  else
    local facts = string.byte(spec, 4) ~= 10 and facts_in(spec) or NONE
    local is_refused = facts.by and is_refused_send(intake, i, id, facts)
    if not is_refused and (is_bounded or facts.lane) and may_be_refused(facts) then
      is_refused = refused(intake, i, facts.lane)
    end
    if not is_refused and facts.unique then
      enqueue_unique(intake, i, id, spec, facts)
    elseif not is_refused then
      add(intake, id, spec, delay_of(intake, facts), facts)
    end
  end
end
close_intake(intake)
remember(caller, id_of_call, cmsgpack.pack(intake.answers))
if number == 1 and is_now() then
  open_arrivals(conf)
end
return intake.answers

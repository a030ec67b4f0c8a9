--- Enqueue one ordinary job: the most common call, and its caller waits for it. It does the same as the rest of
-- `enqueue`, without the tables of a batch, which cost more than the commands.
--@include safe_read, check_arguments, keys, queue_settings, replay, event_and_stats, score
--@exports terms_for_one, keep_one, enqueue_one

--- The settings and the next stamp and number of a queue that takes in any ordinary job, and where none must take
-- turns with tenants' jobs; or nil.
local function terms_for_one(now, epoch)
  local clock = call('HMGET', key('clock'), 'digest', 'stamp', 'enqueued', 'laned')
  local conf = conf_of(clock[1])
  if not conf.version or conf.soft or conf.hard or conf.epoch and conf.epoch > (tonumber(epoch) or 0)
    or count_in(clock[4], 0) > 0 then
    return nil
  end
  return conf, math.max(number_in(clock[2], 0), now) + 1, count_in(clock[3], 0) + 1
end

--- Keep a spec and its caller's record; or neither, when the id is known or the call was made before.
local function keep_one(id, spec, caller, id_of_call, answers)
  if call('HSETNX', key('specs'), id, spec) == 0 then
    return false
  end
  local last = exchange_record(caller, id_of_call, cmsgpack.pack(answers))
  if last and not is_after(last, id_of_call) then
    restore_record(caller, last)
    call('HDEL', key('specs'), id)
    return false
  end
  return true, last
end

--- Returns the answer and the settings, or nil with nothing written when there is more to say.
local function enqueue_one(id, spec, caller, id_of_call, epoch, now)
  local conf, stamp, enqueued = terms_for_one(now, epoch)
  if not conf then
    return nil
  end
  check(string.find(spec, '^%d%d%d'), 'a priority')
  local score, answers = score_of(conf, stamp, tonumber(string.sub(spec, 1, 3)), 0), { now }
  if not keep_one(id, spec, caller, id_of_call, answers) then
    return nil
  end
  call('ZADD', key('ready'), score, id)
  call('HSET', key('clock'), 'stamp', stamp, 'enqueued', enqueued)
  record_one_event('enqueued', id, now, conf.events_kept, '')
  return answers, conf
end

--- A job that comes in where a worker waits for it and nothing else is there: handed over at once. What taking it
-- in and a claim would do, without the set of ready jobs between them and the questions that need no answer.
--@include keys, replay, event_and_stats, score, enqueue_one, lease_record, idle_queue
--@exports hand_over

local function is_free(conf)
  return not (conf.unserved or conf.max_running or conf.limits or conf.costs) and is_idle()
end

--- Hand over the job of an entry; the answer of the exchange, or nil with nothing written where there is more to do.
local function hand_over_one(entry, caller, lease, worker, now, least_us)
  local id, spec, producer, id_of_call = unpack(entry[2])
  if not id_of_call or not string.find(spec, '^%d%d%d\n') or not turn_of(id_of_call) then
    return nil
  end
  local came_at = tonumber(string.match(entry[1], '^%d+')) * 1000
  local conf, stamp, enqueued = terms_for_one(came_at, '')
  if not conf or not is_free(conf) then
    return nil
  end
  local ends_at = now + math.max(conf.lease_us, least_us)
  local score = whole(score_of(conf, stamp, tonumber(string.sub(spec, 1, 3)), 0))
  local is_kept, before = keep_one(id, spec, producer, id_of_call, { came_at })
  if not is_kept then
    return nil
  end
  local last = exchange_record(caller, lease, cmsgpack.pack({ {}, { id }, ends_at, '', 0 }))
  if last and not is_after(last, lease) then
    restore_record(caller, last)
    restore_record(producer, before)
    call('HDEL', key('specs'), id)
    return nil
  end
  call('HSET', key('leases'), id, lease_stem(lease, now, worker) .. score)
  call('ZADD', key('running'), ends_at, id)
  call('HSET', key('clock'), 'stamp', stamp, 'enqueued', enqueued)
  call('XTRIM', key('arrivals'), 'MAXLEN', 0)
  record_one_event('enqueued', id, came_at, conf.events_kept, '')
  record_one_event('claimed', id, now, conf.events_kept, worker)
  return { now, ends_at, '', 0, {}, { id, score }, { spec }, {} }
end

--- The same, for an exchange that does nothing but claim; and whether nothing lies in the stream.
local function hand_over(caller, lease, worker, now, least_us)
  local entries = call('XRANGE', key('arrivals'), '-', '+', 'COUNT', 2)
  return #entries == 1 and hand_over_one(entries[1], caller, lease, worker, now, least_us), #entries == 0
end

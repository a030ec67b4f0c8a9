--- Jobs that are made because another has died, or has failed an attempt: the hooks of its task.
-- The call that ends the attempt also adds the hook, so each end has its hook, whatever caused it.
-- Nothing can refuse it: it is not asked for back-pressure, has no chain, and goes into the lane of its job
-- unless that is on its way to another shard, where it would be left behind.
--@include safe_read, keys, spec_line, score, waiting, event_and_stats, wake_worker, lane, spec_body
--@exports add_hooks
local function member(name, value)
  return value ~= '' and ',"' .. name .. '":' .. cjson.encode(value) or ''
end

--- The headers of its job, so that a trace goes on; not those that tell who made that one.
local function headers_for_hook(headers)
  local kept, is_any = {}, false
  for name, text in pairs(type(headers) == 'table' and headers or {}) do
    if type(name) == 'string' and type(text) == 'string' and not string.find(name, '^faena%-') then
      kept[name], is_any = text, true
    end
  end
  return is_any and ',"headers":' .. cjson.encode(kept) or ''
end

--- What the hook's handler is given, as JSON; the error's is as its worker, or rescue.lua, wrote it.
local function told_to_hook(id, task, tenant, key_of_job, mark, error, now)
  return string.format('{"job_id":%s,"task":%s%s%s,"attempts_made":%d,"losses":%d,"at":%s%s}',
    cjson.encode(id), cjson.encode(task), member('tenant', tenant), member('key', key_of_job),
    tonumber(mark.a) or 0, tonumber(mark.l) or 0, whole(now), error ~= '' and ',"error":' .. error or '')
end

--- The lane that a hook may stand in.
local function lane_for_hook(id, spec)
  local lane = lane_in(spec)
  if lane and (call('HEXISTS', key('moves'), lane) == 1 or call('HEXISTS', key('late'), id) == 1) then
    return nil
  end
  return lane
end

local function hook_of(kind, hooks, id, spec, mark, error, conf, now)
  local task, tenant, key_of_job, headers = read_body(spec)
  local hook = hooks[task]
  if not hook then
    return nil
  end
  local lane = lane_for_hook(id, spec)
  local body = '{"task":' .. cjson.encode(hook) .. member('tenant', tenant) .. member('key', key_of_job)
    .. headers_for_hook(headers) .. ',"payload":' .. told_to_hook(id, task, tenant, key_of_job, mark, error, now) .. '}'
  return { id = kind .. '-' .. string.sub(redis.sha1hex(id .. ' ' .. whole(now)), 1, 24), lane = lane,
           score = score_of(conf, now, priority_of(spec), 0),
           spec = string.sub(spec, 1, 3) .. (lane and ' lane=' .. lane or '') .. '\n' .. body }
end

--- `ids` have come to an end of this kind, dead or failed, at `now`; `errors` are theirs, as JSON.
local function add_hooks(kind, hooks, ids, marks, errors, conf, now)
  local items, columns, fresh = {}, {}, {}
  for i, spec in ipairs(call('HMGET', key('specs'), unpack(ids))) do
    local id = ids[i]
    local item = spec and hook_of(kind, hooks, id, spec, marks[id] or {}, errors[id] or '', conf, now)
    if item then
      items[#items + 1], fresh[#fresh + 1] = item, item.id
      columns[#columns + 1], columns[#columns + 2] = item.id, item.spec
      if item.lane then
        count_lane(item.lane, 1, 0)
      end
    end
  end
  if #items > 0 then
    call('HSET', key('specs'), unpack(columns))
    start_waiting(items)
    bump(key('clock'), 'enqueued', #items)
    wake_worker()
    record_event('enqueued', fresh)
  end
end

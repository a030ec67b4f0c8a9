--- What an exchange does around its claim: upkeep before it, a look ahead after it.
--@include keys, promote_delayed, rescue, retention, clock_fields, lane, tenant_override, idle_queue
--@exports first_score, upkeep, unpark_due, is_work_left
local function first_score(set)
  return tonumber(call('ZRANGE', key(set), 0, 0, 'WITHSCORES')[2])
end

-- Each call does a bounded part of the upkeep. The next call does the rest, and workers are told to call
-- at once. A rescued job costs ten times as much as a settled one.
local RESCUED, PROMOTED = 25, 50

--- Bounded housekeeping. Returns the next due instant and the next lease's end, or nil, whether the
-- call has done so much already that it should claim less, and what is to be told of jobs that died.
local function upkeep(conf, now, slice, sweep)
  local moved, due_at, ends_at, losses = 0, nil, nil, nil
  if not context.is_only_ready then
    due_at, ends_at = first_score('delayed'), first_score('running')
  end
  if ends_at and ends_at <= now then
    moved, losses = rescue(conf, now, RESCUED)
    due_at, ends_at = first_score('delayed'), first_score('running')
  end
  if due_at and due_at <= now then
    moved = moved + promote_due(conf, now, PROMOTED)
    due_at = first_score('delayed')
  end
  -- counts are kept at every call, ages once a second
  if sweep or clock_of('prune_at') <= now then
    prune_all(conf, now, slice)
  elseif conf.completed_count and conf.completed_count > 0
    and call('ZCARD', key('completed')) > conf.completed_count then
    prune('completed', conf, now, slice)
  end
  return due_at, ends_at, moved >= RESCUED, losses
end

--- Lanes whose instant has come are served again; at a sweep some that wait for room are looked at,
-- any of them, for a bound may have ended by itself. Returns when the next one's comes, or nil.
local function unpark_due(now, sweep)
  local opens_at = first_score('parked')
  if opens_at and opens_at <= now then
    unpark(call('ZRANGE', key('parked'), '-inf', now, 'BYSCORE', 'LIMIT', 0, PROMOTED))
  end
  if opens_at and sweep then
    local some, full = call('ZRANDMEMBER', key('parked'), PROMOTED, 'WITHSCORES'), {}
    for i = 1, #some, 2 do
      full[#full + 1] = tonumber(some[i + 1]) >= FULL and some[i] or nil
    end
    unpark(full)
  end
  opens_at = opens_at and first_score('parked')
  return opens_at and opens_at < FULL and opens_at or nil
end

--- Whether ready work is left that may be claimed. A claim that came back short has left none.
local function is_work_left(claimed, grant)
  if laned_now() == 0 then
    return claimed == grant and call('ZCARD', key('ready')) > 0
  end
  return call('EXISTS', key('ring')) == 1 or call('ZCARD', key('ready')) > laned_now()
end

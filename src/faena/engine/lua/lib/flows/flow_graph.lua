--- Flows: jobs that wait for others, in any queue. A flow lives at one queue, as `flow:<id>`:
--   state     building | running | completed | failed | cancelled
--   nodes · left · bad   how many there are, have not ended, and have failed so that the flow has
--   runs      how often it was taken up, from 1
--   v:<n>     queue, job, name and task of a node   j:<n>   what its job is made of
--   s:<n>     its state, how many parents it waits for, and how many of them have doomed it
--   p:<n>     its parents, negative where a failed one is not shown to it
--   r:<n>     its result, or its error
--   k:<n>     1 when its failure does not fail the flow, then child, rule, child, rule …
-- States of nodes: waiting, sent, completed, dead, cancelled, and skipped (a parent failed).
-- Rules: `fail` dooms the child; with `continue` and `ignore` it runs all the same.
-- A node that ends is passed on to its children: `good`, `bad`, or `redo` where it had failed before.
-- Children that were skipped because of it wait again, and `undo` the same with theirs; until that is
-- done they are kept back, or their own end could be passed on first. A call looks at so many nodes,
-- and leaves the rest to a message. Messages of an earlier run of the flow are not read.
--@include keys, outbox, event_and_stats
--@exports flow_key, open_flow, close_flow, end_node, launch, call_off
--@state room = 200   -- how many of them are left
local STEP = 200          -- nodes looked at in a call
local DOOM = { good = 0, bad = 1, undo = -1, redo = -1 }
local WAIT = { good = -1, bad = -1, undo = 1, redo = 0 }
local KEPT_US = 7 * 86400 * 1000000
local KEPT = 10000


local function take_room(number)
  number = math.max(0, math.min(number, context.room))
  context.room = context.room - number
  return number
end

local function flow_key(flow)
  return key('flow:' .. flow)
end

local function read_node(text)
  local state, waits, dooms = string.match(text, '^(%w+) (%-?%d+) (%-?%d+)$')
  return { state = state, waits = tonumber(waits), dooms = tonumber(dooms) }
end

local function node_text(node)
  return node.state .. ' ' .. node.waits .. ' ' .. node.dooms
end

--- A flow under way: what changes in it is written at the end of the call.
local function open_flow(flow)
  local found = call('HMGET', flow_key(flow), 'state', 'nodes', 'left', 'bad', 'runs')
  return { id = flow, state = found[1], nodes = tonumber(found[2]), left = tonumber(found[3]),
           bad = tonumber(found[4]), run = tonumber(found[5]) or 1, work = {} }
end

--- Something to be done in the queue of a node: `f` send its job, `x` cancel it.
local function add_pending_send(flow, what, number, now)
  local job = cmsgpack.unpack(call('HGET', flow_key(flow.id), 'v:' .. number))[2]
  call('ZADD', key('pending_sends'), now, what .. ':' .. flow.id .. ':' .. number .. ':' .. job)
  context.has_messages = true
end

local function is_bad(state)
  return state == 'dead' or state == 'cancelled' or state == 'skipped'
end

--- Whether the flow goes on when a node fails.
local function is_tolerated(flow, number)
  local kin = call('HGET', flow_key(flow.id), 'k:' .. number)
  return kin and cmsgpack.unpack(kin)[1] == 1
end

--- A node has come to its end, or (`by` -1) is taken back.
local function count_end(flow, number, state, by)
  flow.left = flow.left - by
  if is_bad(state) and not is_tolerated(flow, number) then
    flow.bad = flow.bad + by
  end
end

local function pass_on(flow, number, how)
  flow.work[#flow.work + 1] = { number, 1, how }
end

--- A child may begin, or never will.
local function decide(flow, number, node, now)
  if flow.state == 'cancelled' then
    node.state = 'cancelled'
  elseif node.dooms > 0 then
    node.state = 'skipped'
  else
    node.state = 'sent'
    return add_pending_send(flow, 'f', number, now)
  end
  count_end(flow, number, node.state, 1)
  pass_on(flow, number, 'bad')
end

--- A child that was skipped waits again, also for its own children to be told.
local function wait_again(flow, number, node)
  count_end(flow, number, node.state, -1)
  node.state, node.waits = 'waiting', node.waits + 1
  pass_on(flow, number, 'undo')
end

local function touch(flow, number, node, rule, how, now)
  if node.state == 'skipped' and DOOM[how] < 0 then
    wait_again(flow, number, node)
  elseif node.state ~= 'waiting' then
    return   -- it has begun without this parent, and is not told any more
  end
  node.waits = node.waits + WAIT[how]
  node.dooms = node.dooms + (rule == 'fail' and DOOM[how] or 0)
  if node.waits == 0 then
    decide(flow, number, node, now)
  end
end

local function save_node(flow, number, node)
  call('HSET', flow_key(flow.id), 's:' .. number, node_text(node))
end

--- Its children have all been told that it is not skipped any more.
local function release_node(flow, number, now)
  local node = read_node(call('HGET', flow_key(flow.id), 's:' .. number))
  node.waits = node.waits - 1
  if node.state == 'waiting' and node.waits == 0 then
    decide(flow, number, node, now)
  end
  save_node(flow, number, node)
end

--- The children of a node from one on, as far as there is room: names, and child, rule, child, rule …
local function children_of(flow, number, at)
  local packed = call('HGET', flow_key(flow.id), 'k:' .. number)
  local kin, names = packed and cmsgpack.unpack(packed) or { 0 }, {}
  for i = at, at + take_room((#kin - 1) / 2 - at + 1) - 1 do
    names[#names + 1] = 's:' .. kin[2 * i]
  end
  return names, kin
end

--- Tell children of a node, from one on, how it ended.
local function notify_children(flow, item, now)
  local number, at, how = item[1], item[2], item[3]
  local names, kin = children_of(flow, number, at)
  local changed = {}
  for i, text in ipairs(#names > 0 and call('HMGET', flow_key(flow.id), unpack(names)) or {}) do
    local child, rule, node = kin[2 * (at + i - 1)], kin[2 * (at + i - 1) + 1], read_node(text)
    touch(flow, child, node, rule, how, now)
    changed[#changed + 1] = names[i]
    changed[#changed + 1] = node_text(node)
  end
  if #changed > 0 then
    call('HSET', flow_key(flow.id), unpack(changed))
  end
  if 2 * (at + #names) < #kin then
    table.insert(flow.work, 1, { number, at + #names, how })
  elseif how == 'undo' then
    release_node(flow, number, now)
  end
end

local function drop_flow(flow)
  call('ZREM', key('flows_done'), flow)
  call('UNLINK', flow_key(flow))
end

--- Flows that ended long ago, or are too many, go; a few at a call.
local function prune_flows(now)
  local old = call('ZRANGE', key('flows_done'), '-inf', now - KEPT_US, 'BYSCORE', 'LIMIT', 0, 5)
  if #old == 0 and call('ZCARD', key('flows_done')) > KEPT then
    old = call('ZRANGE', key('flows_done'), 0, 4)
  end
  for _, flow in ipairs(old) do
    drop_flow(flow)
  end
end

--- Well or not; a flow that was called off stays so.
local function has_ended(state)
  return state == 'failed' or state == 'completed'
end

local function end_flow(flow, state, now)
  flow.state = state
  call('HSET', flow_key(flow.id), 'finished', whole(now))
  call('ZREM', key('flows'), flow.id)
  call('ZADD', key('flows_done'), now, flow.id)
  record_event('flow_' .. state, { flow.id })
  prune_flows(now)
end

--- A job that had failed was run again.
local function go_on(flow, now)
  flow.state = 'running'
  call('HDEL', flow_key(flow.id), 'finished')
  call('ZREM', key('flows_done'), flow.id)
  call('ZADD', key('flows'), now, flow.id)
end

local function finish_flow(flow, now)
  if flow.left > 0 and has_ended(flow.state) then
    go_on(flow, now)
  elseif flow.left == 0 and (flow.state == 'running' or has_ended(flow.state)) then
    local state = flow.bad > 0 and 'failed' or 'completed'
    if state ~= flow.state then
      end_flow(flow, state, now)
    end
  elseif flow.left == 0 and flow.state == 'cancelled' and call('HEXISTS', flow_key(flow.id), 'finished') == 0 then
    end_flow(flow, 'cancelled', now)
  end
end

--- Work off what was passed on, as much as a call may; then write how the flow stands.
local function close_flow(flow, shard, now)
  while #flow.work > 0 and context.room > 0 do
    context.room = context.room - 1
    notify_children(flow, table.remove(flow.work, 1), now)
  end
  for _, item in ipairs(flow.work) do
    write_message(shard, { 'pass', flow.id, flow.run, item[1], item[2], item[3] })
  end
  if #flow.work == 0 then
    finish_flow(flow, now)
  end
  call('HSET', flow_key(flow.id), 'state', flow.state, 'left', flow.left, 'bad', flow.bad)
end

--- The job of a node has ended: for the first time, or once more after a failure.
local function end_node(flow, number, state, job, words)
  local found = call('HMGET', flow_key(flow.id), 's:' .. number, 'v:' .. number)
  local node = found[1] and read_node(found[1])
  if not node or cmsgpack.unpack(found[2])[2] ~= job or node.state == 'completed' or node.state == state
    or flow.state == 'reopened' then
    return
  end
  call('ZREM', key('pending_sends'), 'f:' .. flow.id .. ':' .. number .. ':' .. job)
  local how = is_bad(state) and 'bad' or 'good'
  if node.state ~= 'sent' then
    if state ~= 'completed' then
      return   -- it failed before, and has failed otherwise now
    end
    count_end(flow, number, node.state, -1)
    how = 'redo'
  end
  node.state = state
  count_end(flow, number, state, 1)
  pass_on(flow, number, how)
  call('HSET', flow_key(flow.id), 's:' .. number, node_text(node), 'r:' .. number, words)
end

--- The nodes from `at` on that there is room for, and where the rest begins.
local function stretch(flow, at)
  local names, nodes = {}, {}
  for number = at, at + take_room(flow.nodes - at + 1) - 1 do
    names[#names + 1] = 's:' .. number
  end
  for i, text in ipairs(#names > 0 and call('HMGET', flow_key(flow.id), unpack(names)) or {}) do
    nodes[i] = read_node(text)
  end
  return nodes, at + #nodes
end

local function go_on_later(flow, shard, what, at)
  if at <= flow.nodes then
    write_message(shard, { what, flow.id, flow.run, at })
  end
end

--- Nodes from one on are sent, those that wait for nothing.
local function launch(flow, shard, at, now)
  if flow.state ~= 'running' then
    return   -- it was called off meanwhile
  end
  local nodes, rest = stretch(flow, at)
  for i, node in ipairs(nodes) do
    if node.state == 'waiting' and node.waits == 0 then
      node.state = 'sent'
      add_pending_send(flow, 'f', at + i - 1, now)
      save_node(flow, at + i - 1, node)
    end
  end
  go_on_later(flow, shard, 'launch', rest)
end

--- Nodes from one on are not sent any more, and those that are out are called back.
local function call_off(flow, shard, at, now)
  local nodes, rest = stretch(flow, at)
  for i, node in ipairs(nodes) do
    local number = at + i - 1
    if node.state == 'waiting' then
      node.state = 'cancelled'
      count_end(flow, number, node.state, 1)
      save_node(flow, number, node)
    elseif node.state == 'sent' then
      add_pending_send(flow, 'x', number, now)
    end
  end
  go_on_later(flow, shard, 'call_off', rest)
end

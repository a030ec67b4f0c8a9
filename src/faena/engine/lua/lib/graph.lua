--- Flows: jobs that wait for others, in any queue. A flow lives at one queue, as `flow:<id>`:
--   state     building | running | completed | failed | cancelled
--   nodes · left · bad   how many there are, have not ended, and have failed so that the flow has
--   v:<n>     queue, job, name and task of a node   j:<n>   what its job is made of
--   s:<n>     its state, how many parents it waits for, and how many of them have doomed it
--   p:<n>     its parents, negative where a failed one is not shown to it
--   r:<n>     its result, or its error
--   k:<n>     1 when its failure is nobody's, then child, rule, child, rule …
-- States of nodes: waiting, sent, completed, dead, cancelled, and skipped (a parent failed).
-- Rules: `fail` dooms the child; with `continue` and `ignore` it runs all the same.
-- A node that ends is passed on to its children, so many in a call; the rest is left to a letter.
--@include key, letter, tally
local STEP = 200          -- children looked at in a call
local KEPT_US = 7 * 86400 * 1000000
local KEPT = 10000

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
  local found = call('HMGET', flow_key(flow), 'state', 'nodes', 'left', 'bad')
  return { id = flow, state = found[1], nodes = tonumber(found[2]), left = tonumber(found[3]),
           bad = tonumber(found[4]), work = {}, changed = {} }
end

--- Something to be done in the queue of a node: `f` send its job, `x` cancel it.
local function add_errand(flow, what, number, now)
  local job = cmsgpack.unpack(call('HGET', flow_key(flow.id), 'v:' .. number))[2]
  call('ZADD', key('errands'), now, what .. ':' .. flow.id .. ':' .. number .. ':' .. job)
  has_mail = true
end

local function is_bad(state)
  return state == 'dead' or state == 'cancelled' or state == 'skipped'
end

--- Whether nobody minds that a node fails.
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
    return add_errand(flow, 'f', number, now)
  end
  count_end(flow, number, node.state, 1)
  pass_on(flow, number, 'bad')
end

local function touch(flow, number, node, rule, how, now)
  local doom = rule == 'fail' and how ~= 'good' and 1 or 0
  if how == 'undo' and node.state == 'skipped' then
    count_end(flow, number, node.state, -1)
    node.state = 'waiting'
    pass_on(flow, number, 'undo')
  elseif node.state ~= 'waiting' then
    return   -- it has begun without this parent, and is not told any more
  end
  if how == 'undo' then
    node.waits, node.dooms = node.waits + 1, node.dooms - doom
  else
    node.waits, node.dooms = node.waits - 1, node.dooms + doom
    if node.waits == 0 then
      decide(flow, number, node, now)
    end
  end
end

--- Tell children of a node, from one on, how it ended; returns how many were looked at.
local function tell_children(flow, item, room, now)
  local number, at, how = item[1], item[2], item[3]
  local packed = call('HGET', flow_key(flow.id), 'k:' .. number)
  local kin = packed and cmsgpack.unpack(packed) or { 0 }
  local names, last = {}, math.min((#kin - 1) / 2, at + room - 1)
  for i = at, last do
    names[#names + 1] = 's:' .. kin[2 * i]
  end
  if #names == 0 then
    return 1
  end
  local changed = {}
  for i, text in ipairs(call('HMGET', flow_key(flow.id), unpack(names))) do
    local child, rule, node = kin[2 * (at + i - 1)], kin[2 * (at + i - 1) + 1], read_node(text)
    touch(flow, child, node, rule, how, now)
    changed[#changed + 1] = names[i]
    changed[#changed + 1] = node_text(node)
  end
  call('HSET', flow_key(flow.id), unpack(changed))
  if 2 * last + 1 < #kin then
    table.insert(flow.work, 1, { number, last + 1, how })
  end
  return #names
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

local function has_ended(state)
  return state == 'failed' or state == 'completed'
end

local function end_flow(flow, state, now)
  flow.state = state
  call('HSET', flow_key(flow.id), 'finished', whole(now))
  call('ZREM', key('flows'), flow.id)
  call('ZADD', key('flows_done'), now, flow.id)
  tell('flow_' .. state, { flow.id })
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
local function close_flow(flow, home, now)
  local room = STEP
  while #flow.work > 0 and room > 0 do
    room = room - tell_children(flow, table.remove(flow.work, 1), room, now)
  end
  for _, item in ipairs(flow.work) do
    write_letter(home, { 'pass', flow.id, item[1], item[2], item[3] })
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
  if not node or cmsgpack.unpack(found[2])[2] ~= job or node.state == 'completed' or node.state == state then
    return
  end
  call('ZREM', key('errands'), 'f:' .. flow.id .. ':' .. number .. ':' .. job)
  if node.state ~= 'sent' then
    if state ~= 'completed' then
      return   -- it failed before, and has failed otherwise now
    end
    count_end(flow, number, node.state, -1)
    pass_on(flow, number, 'undo')
  end
  node.state = state
  count_end(flow, number, state, 1)
  pass_on(flow, number, is_bad(state) and 'bad' or 'good')
  call('HSET', flow_key(flow.id), 's:' .. number, node_text(node), 'r:' .. number, words)
end

--- The nodes from `at` on that a call may look at.
local function stretch(flow, at)
  local names, nodes = {}, {}
  for number = at, math.min(flow.nodes, at + STEP - 1) do
    names[#names + 1] = 's:' .. number
  end
  for i, text in ipairs(call('HMGET', flow_key(flow.id), unpack(names))) do
    nodes[i] = read_node(text)
  end
  return nodes
end

local function save_node(flow, number, node)
  call('HSET', flow_key(flow.id), 's:' .. number, node_text(node))
end

--- Nodes from one on are sent, those that wait for nothing.
local function launch(flow, home, at, now)
  if flow.state ~= 'running' then
    return   -- it was called off meanwhile
  end
  for i, node in ipairs(stretch(flow, at)) do
    if node.state == 'waiting' and node.waits == 0 then
      node.state = 'sent'
      add_errand(flow, 'f', at + i - 1, now)
      save_node(flow, at + i - 1, node)
    end
  end
  if at + STEP <= flow.nodes then
    write_letter(home, { 'launch', flow.id, at + STEP })
  end
end

--- Nodes from one on are not sent any more, and those that are out are called back.
local function call_off(flow, home, at, now)
  for i, node in ipairs(stretch(flow, at)) do
    local number = at + i - 1
    if node.state == 'waiting' then
      node.state = 'cancelled'
      count_end(flow, number, node.state, 1)
      save_node(flow, number, node)
    elseif node.state == 'sent' then
      add_errand(flow, 'x', number, now)
    end
  end
  if at + STEP <= flow.nodes then
    write_letter(home, { 'call_off', flow.id, at + STEP })
  end
end

--- Write a flow, begin it, call it off, end a node of it, or take a finished one up again.
-- states   none
-- keys     flow hashes · flows, flows_done, pending_sends zsets · messages streams
--@args     shard, id, verb, run?, by?, digest?, nodes?, left?, node?, job?, state?, words?, field value...
--          open, run, digest, fields   write the first part of it; what is left of another plan, whose maker has died,
--          makes room. One that is not begun is gone after an hour
--          put, run, fields, or the same with a digest   write further parts
--          start, run, nodes, left, digest (or none)   begin it
--          cancel, by   send nothing more, and cancel what is out
--          end, node, job, state, words   its job could not be sent, or is not there any more
--          rerun, by   let it be written again, when it has ended and not well
-- returns  OK, or of `rerun` the new run; its state where that forbids the verb; unknown · another (plan is
--          being written under its id)
--@include now, event_and_stats, flow_graph, keys
local BUILDING_TTL_S = 3600
local flow = open_flow(id)

local function is_being_written()
  return (flow.state == 'building' or flow.state == 'reopened') and flow.run == tonumber(run)
end

--- Whether what was written so far is of another plan than this call's.
local function is_another()
  return digest ~= '' and flow.state and call('HGET', flow_key(id), 'plan') ~= digest
end

local verbs
verbs = {
  open = function()
    if flow.state == 'building' and is_another() then
      call('DEL', flow_key(id))
      flow.state = nil
    end
    return verbs.put()
  end,
  put = function()
    if flow.state and not is_being_written() then
      return flow.state
    elseif is_another() then
      return 'another'
    end
    call('HSET', flow_key(id), 'state', flow.state or 'building', unpack(ARGV, first_field))
    if not flow.state then
      call('HSET', flow_key(id), 'created', whole(now))
      call('EXPIRE', flow_key(id), BUILDING_TTL_S)
    end
    return 'OK'
  end,
  start = function()
    if not is_being_written() then
      return flow.state or 'unknown'
    elseif is_another() then
      return 'another'
    end
    flow.state, flow.nodes, flow.left, flow.bad = 'running', tonumber(nodes), tonumber(left), 0
    call('PERSIST', flow_key(id))
    call('HSET', flow_key(id), 'nodes', flow.nodes)
    call('ZADD', key('flows'), now, id)
    launch(flow, shard, 1, now)
    close_flow(flow, shard, now)
    return 'OK'
  end,
  cancel = function()
    if flow.state == 'cancelled' then
      return 'OK'
    elseif flow.state ~= 'running' then
      return flow.state or 'unknown'
    end
    flow.state = 'cancelled'
    record_action('flow_cancelling', id)
    call_off(flow, shard, 1, now)
    close_flow(flow, shard, now)
    return 'OK'
  end,
  ['end'] = function()
    if not flow.state then
      return 'unknown'
    end
    end_node(flow, tonumber(node), state, job, words)
    close_flow(flow, shard, now)
    return 'OK'
  end,
  rerun = function()
    local is_over = flow.state == 'failed' or flow.state == 'cancelled' and flow.left == 0
    if not is_over and flow.state ~= 'reopened' then
      return flow.state or 'unknown'
    end
    if flow.state ~= 'reopened' then
      record_action('flow_rerun', id)
    end
    call('HSET', flow_key(id), 'state', 'reopened', 'runs', flow.run + 1)
    call('HDEL', flow_key(id), 'finished')
    call('ZREM', key('flows_done'), id)
    call('ZADD', key('flows'), now, id)
    return whole(flow.run + 1)
  end,
}
context.by = by
return verbs[verb]()

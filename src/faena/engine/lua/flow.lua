--- Write a flow, begin it, call it off, end a node of it, or take a finished one up again.
-- states   none of jobs
-- keys     flow hashes · flows, flows_done, errands zsets · letters streams
-- args     now · this home · flow · verb …
--          put · run · (field · value) …   write parts of it; one whose maker died is gone after an hour
--          start · run · nodes · left   begin it
--          cancel   send nothing more, and cancel what is out
--          end · node · job · state · words   its job could not be sent, or is not there any more
--          reopen   let it be written again, when it has ended and not well
-- returns  OK, or of `reopen` the new run; its state where that forbids the verb; unknown
--@include now, conf, tally, letter, graph
local BUILDING_TTL_S = 3600
local now, home, id, verb = now_us(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local flow = open_flow(id)

local function is_being_written()
  return (flow.state == 'building' or flow.state == 'reopened') and flow.run == tonumber(ARGV[5])
end

local verbs = {
  put = function()
    if flow.state and not is_being_written() then
      return flow.state
    end
    call('HSET', flow_key(id), 'state', flow.state or 'building', unpack(ARGV, 6))
    if not flow.state then
      call('HSET', flow_key(id), 'created', whole(now))
      call('EXPIRE', flow_key(id), BUILDING_TTL_S)
    end
    return 'OK'
  end,
  start = function()
    if not is_being_written() then
      return flow.state or 'unknown'
    end
    flow.state, flow.nodes, flow.left, flow.bad = 'running', tonumber(ARGV[6]), tonumber(ARGV[7]), 0
    call('PERSIST', flow_key(id))
    call('HSET', flow_key(id), 'nodes', flow.nodes)
    call('ZADD', key('flows'), now, id)
    launch(flow, home, 1, now)
    close_flow(flow, home, now)
    return 'OK'
  end,
  cancel = function()
    if flow.state == 'cancelled' then
      return 'OK'
    elseif flow.state ~= 'running' then
      return flow.state or 'unknown'
    end
    flow.state = 'cancelled'
    call_off(flow, home, 1, now)
    close_flow(flow, home, now)
    return 'OK'
  end,
  ['end'] = function()
    if not flow.state then
      return 'unknown'
    end
    end_node(flow, tonumber(ARGV[5]), ARGV[7], ARGV[6], ARGV[8])
    close_flow(flow, home, now)
    return 'OK'
  end,
  reopen = function()
    local is_over = flow.state == 'failed' or flow.state == 'cancelled' and flow.left == 0
    if not is_over and flow.state ~= 'reopened' then
      return flow.state or 'unknown'
    end
    call('HSET', flow_key(id), 'state', 'reopened', 'runs', flow.run + 1)
    call('HDEL', flow_key(id), 'finished')
    call('ZREM', key('flows_done'), id)
    call('ZADD', key('flows'), now, id)
    return whole(flow.run + 1)
  end,
}
local answer = verbs[verb]()
flush_tally(now, conf_now().events_kept, '')
return answer

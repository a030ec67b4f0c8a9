--- Write a flow, begin it, call it off, or take a finished one up again.
-- states   none of jobs
-- keys     flow hashes · flows, flows_done, errands zsets · letters streams
-- args     now · this home · flow · verb …
--          put · (field · value) …   write parts of it; a flow whose maker died is gone after an hour
--          start · nodes · left · bad   begin it
--          cancel   send nothing more, and cancel what is out
--          reopen   let it be written again, when it has ended and not well
-- returns  OK, or its state where that forbids the verb; unknown
--@include now, conf, tally, letter, graph
local BUILDING_TTL_S = 3600
local now, home, id, verb = now_us(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local flow = open_flow(id)

local function is_being_written()
  return not flow.state or flow.state == 'building' or flow.state == 'reopened'
end

local verbs = {
  put = function()
    if not is_being_written() then
      return flow.state
    end
    call('HSET', flow_key(id), 'state', flow.state or 'building', unpack(ARGV, 5))
    if not flow.state then
      call('HSET', flow_key(id), 'created', whole(now))
      call('EXPIRE', flow_key(id), BUILDING_TTL_S)
    end
    return 'OK'
  end,
  start = function()
    if not flow.state or not is_being_written() then
      return flow.state or 'unknown'
    end
    flow.state, flow.nodes, flow.left, flow.bad = 'running', tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
    call('PERSIST', flow_key(id))
    call('HSET', flow_key(id), 'nodes', flow.nodes, 'started', whole(now))
    call('HDEL', flow_key(id), 'finished')
    call('ZADD', key('flows'), now, id)
    call('ZREM', key('flows_done'), id)
    launch(flow, home, 1, now)
    close_flow(flow, home, now)
    return 'OK'
  end,
  cancel = function()
    if flow.state ~= 'running' then
      return flow.state or 'unknown'
    end
    flow.state = 'cancelled'
    call_off(flow, home, 1, now)
    close_flow(flow, home, now)
    return 'OK'
  end,
  reopen = function()
    if flow.state == 'reopened' then
      return 'OK'
    elseif flow.state ~= 'failed' and not (flow.state == 'cancelled' and flow.left == 0) then
      return flow.state or 'unknown'
    end
    call('HSET', flow_key(id), 'state', 'reopened')
    return 'OK'
  end,
}
local answer = verbs[verb]()
flush_tally(now, conf_now().events_kept, '')
return answer

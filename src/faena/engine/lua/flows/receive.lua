--- Read messages from another shard, or from this one, each once.
-- states   none
-- keys     received hash · flow, group hashes · pending_sends, flows, flows_done, groups, groups_done zsets ·
--          messages streams
--@args     shard, source, id message...
--          shard is this one, source the one they come from
-- returns  1 when there is something to be carried now, else 0
-- A message is one of: ended, counted, pass, launch, call_off; the libraries tell what is in each.
--@flags allow-oom
--@include now, outbox, flow_graph, group_record, keys

--- Ids of messages are `milliseconds-number`.
local function is_after(id, other)
  local ms, number = string.match(id, '^(%d+)-(%d+)$')
  local other_ms, other_number = string.match(other, '^(%d+)-(%d+)$')
  if ms ~= other_ms then
    return tonumber(ms) > tonumber(other_ms)
  end
  return tonumber(number) > tonumber(other_number)
end

local read = {
  counted = function(message)
    count_members(message[2], message[3], now)
  end,
  ended = function(message)
    local kind, which, name, state, job, words = unpack(message, 2)
    if kind == 'g' then
      callback_ended(which, name, state, job)
    elseif call('EXISTS', flow_key(which)) == 1 then
      local flow = open_flow(which)
      end_node(flow, tonumber(name), state, job, words)
      close_flow(flow, shard, now)
    end
  end,
}

local function read_of_flow(message)
  if call('EXISTS', flow_key(message[2])) == 0 then
    return
  end
  local flow = open_flow(message[2])
  if flow.run ~= message[3] or flow.state == 'reopened' then
    return   -- all of this run is decided anew
  elseif message[1] == 'pass' then
    flow.work[1] = { message[4], message[5], message[6] }
  elseif message[1] == 'launch' then
    launch(flow, shard, message[4], now)
  else
    call_off(flow, shard, message[4], now)
  end
  close_flow(flow, shard, now)
end

local last = call('HGET', key('received'), source)
for i = first_id, #ARGV, 2 do
  if not last or is_after(ARGV[i], last) then
    last = ARGV[i]
    local message = cmsgpack.unpack(ARGV[i + 1])
    local reading = read[message[1]] or read_of_flow
    reading(message)
  end
end
if last then
  call('HSET', key('received'), source, last)
end
return context.has_messages and 1 or 0

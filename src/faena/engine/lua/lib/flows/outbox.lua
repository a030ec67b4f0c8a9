--- Messages: what one shard has to tell another, kept here until they are known to have arrived.
--   recipients        queues that messages wait for
--   messages:         for each of them a stream, never removed: its ids must grow, also where a server has
--                     lost its last messages or its clock was put back
--   message_streams   all that have such a stream
-- A message to the queue itself is work that was left over for a later call.
--@include keys
--@exports write_message
--@state has_messages = false   -- whether this call has left something to be carried

local function write_message(to, message)
  if call('SADD', key('recipients'), to) == 1 then
    call('HSET', key('message_streams'), to, '')
  end
  call('XADD', key('messages:' .. to), '*', 'is', cmsgpack.pack(message))
  context.has_messages = true
end

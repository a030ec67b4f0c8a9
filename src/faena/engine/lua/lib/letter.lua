--- Letters: what one home has to tell another, kept here until they are known to have arrived.
--   addressees   queues that letters wait for
--   letters:     for each of them a stream, never removed: its ids must grow, also where a server has
--                lost its last letters or its clock was put back
--   posts        all that have such a stream
-- A letter to the queue itself is work that was left over for a later call.
--@include key
--@exports write_letter
--@state has_mail = false   -- whether this call has left something to be carried

local function write_letter(to, letter)
  if call('SADD', key('addressees'), to) == 1 then
    call('HSET', key('posts'), to, '')
  end
  call('XADD', key('letters:' .. to), '*', 'is', cmsgpack.pack(letter))
  context.has_mail = true
end

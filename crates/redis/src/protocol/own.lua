-- Takes the lease under a fresh token, and reads the crawl's state.
-- KEYS: lease, state, claimed items
-- ARGV: token, holder, milliseconds, the runs that are known to be dead. With 0 milliseconds, the
--       script changes nothing, and answers as if the lease were free
-- Answers 'ok', seq, commit_id, format, filter, number of claimed items, number of unseen items in
--       all commits; or 'held', lease, milliseconds until the lease ends, seq, commit_id, filter;
--       or an error. A value that Redis does not have is ''
-- Never takes the lease of a run that may live. The answer has the state after which no late
-- command of an earlier token can change it.
local lease, state, claimed = unpack(KEYS)
local token, holder, milliseconds = unpack(ARGV)

local refusal = type_refusal(lease, 'string')
    or type_refusal(state, 'hash')
    or type_refusal(claimed, 'list')
if refusal then
    return refusal
end
local held = redis.call('GET', lease)
local is_free = milliseconds == '0' or not held or run_of(held) == run_of(token)
for index = 4, #ARGV do
    is_free = is_free or run_of(held) == ARGV[index]
end
local found = redis.call('HMGET', state, 'seq', 'commit_id', 'format', 'filter', 'unseen')
for index = 1, 5 do
    found[index] = found[index] or ''
end
local seq, commit_id, format, filter, unseen = unpack(found)
if not is_free then
    return {'held', held, redis.call('PTTL', lease), seq, commit_id, filter}
end
local count = redis.call('LLEN', claimed)
if milliseconds ~= '0' then
    redis.call('SET', lease, token .. ' ' .. holder, 'PX', milliseconds)
end
return {'ok', seq, commit_id, format, filter, count, unseen}

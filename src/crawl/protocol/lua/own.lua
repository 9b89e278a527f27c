-- Takes the lease under a fresh token, and reads the crawl's state.
-- KEYS: lease, state, processing list
-- ARGV: token, holder, milliseconds, then the runs that are known to be dead. With 0 milliseconds,
--       the script changes nothing, and answers as if the lease were free.
-- Answers 'ok', seq, commit_id, format, filter, number of claimed items, number of unseen items in
--         all commits; or 'held', lease, milliseconds until the lease ends, seq, commit_id, filter.
local lease, state, processing = unpack(KEYS)
local token, holder, milliseconds = unpack(ARGV)

local refusal = type_refusal(lease, 'string')
    or type_refusal(state, 'hash')
    or type_refusal(processing, 'list')
if refusal then
    return refusal
end
local held = redis.call('GET', lease)
local is_free = milliseconds == '0' or not held or run_of(held) == run_of(token)
for index = 4, #ARGV do
    is_free = is_free or run_of(held) == ARGV[index]
end
local found = redis.call('HMGET', state, 'seq', 'commit_id', 'format', 'filter', 'unseen')
if not is_free then
    local left = redis.call('PTTL', lease)
    return {'held', held, left, found[1] or '', found[2] or '', found[4] or ''}
end
local claimed = redis.call('LLEN', processing)
if milliseconds ~= '0' then
    redis.call('SET', lease, token .. ' ' .. holder, 'PX', milliseconds)
end
return {
    'ok', found[1] or '', found[2] or '', found[3] or '', found[4] or '', claimed, found[5] or ''}

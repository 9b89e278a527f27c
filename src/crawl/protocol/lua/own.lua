-- Takes the lease under a fresh token, and reads the crawl's state.
-- KEYS: lease, state, the keys of the source
-- ARGV: token, holder, milliseconds, then the runs that are known to be dead. With 0 milliseconds,
--       the script changes nothing, and answers as if the lease were free.
-- Answers 'ok', seq, commit_id, format, filter, the source's place, number of items claimed after
--         the place, number of unseen items in all commits; or 'held', lease, milliseconds until
--         the lease ends, seq, commit_id, filter.
local lease, state = unpack(KEYS, 1, 2)
local source = {unpack(KEYS, 3)}
local token, holder, milliseconds = unpack(ARGV)

local refusal = type_refusal(lease, 'string')
    or type_refusal(state, 'hash')
    or source_own_refusal(source)
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
local place, left = source_place(state, source)
if milliseconds ~= '0' then
    redis.call('SET', lease, token .. ' ' .. holder, 'PX', milliseconds)
end
return {
    'ok', found[1] or '', found[2] or '', found[3] or '', found[4] or '', place, left,
    found[5] or ''}

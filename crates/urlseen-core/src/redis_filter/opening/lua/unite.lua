-- Renames a filter that was assembled aside to its final names. Answers 0 and changes nothing if
-- Redis has one of them.
-- KEYS: the definition; for each string its name aside and its final name; then the hash in which
-- the filter's project keeps the parameters, if it does
-- ARGV: number of the strings' keys; number of the definition's words; these words: its fields and
-- their values; then those of that hash
local strings, words = tonumber(ARGV[1]) + 1, tonumber(ARGV[2]) + 2
local record = KEYS[strings + 1]
if redis.call('EXISTS', KEYS[1]) == 1 or record and redis.call('EXISTS', record) == 1 then
    return 0
end
for at = 3, strings, 2 do
    if redis.call('EXISTS', KEYS[at]) == 1 then
        return 0
    end
end
for at = 2, strings, 2 do
    if redis.call('EXISTS', KEYS[at]) == 1 then
        redis.call('PERSIST', KEYS[at])
        redis.call('RENAME', KEYS[at], KEYS[at + 1])
    end
end
redis.call('HSET', KEYS[1], unpack(ARGV, 3, words))
if record then
    redis.call('HSET', record, unpack(ARGV, words + 1))
end
return 1

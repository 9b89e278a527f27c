-- Commits one batch to a filter whose bits are in Redis: tests and sets the bits of its items,
-- pushes those that are unseen, and does the rest, all at once. Whoever else shares the filter sees
-- all of it or nothing.
-- Redis does not roll a script back, so all that can fail is done before the first write. Only bits
-- that were 0 are written: a seen item adds nothing to the append-only file.
-- KEYS: lease, state, taken, sink, rejected, the strings that the items' bits are in
-- ARGV: token, seq, tip, next seq, next tip, length of taken, items in the batch, longest list of
--       rejects (0: no bound), bits an item, places, items to be judged, those items, the rejects
-- places: for each bit of those items the number of its string, from 1 (2 bytes; 0: the item goes
--         on unchecked), and where in it the bit is (4 bytes), big endian.
-- Answers 'ok', length of sink, length of rejected, rejects dropped, items unseen.
local lease, state, taken, sink, rejected = unpack(KEYS, 1, 5)
local token, seq, tip, next_seq, next_tip = unpack(ARGV, 1, 5)
local taken_len, count, rejected_max = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local width, places, judged = tonumber(ARGV[9]), ARGV[10], tonumber(ARGV[11])
local first_item, first_reject = 12, 12 + judged
local rejects = #ARGV - first_reject + 1
local strings = #KEYS - 5

local function strings_refusal()
    for number = 6, #KEYS do
        local refusal = permission_refusal('BITFIELD', KEYS[number], 'SET', 'u1', 0, 1)
        if refusal then
            return refusal
        end
    end
end

local refusal = lease_refusal(lease, token)
    or head_refusal(state, seq, tip)
    or source_refusal(taken, taken_len)
    or sink_push_refusal(sink)
    or rejects_refusal(rejected, rejects)
    or strings_refusal()
    or permission_refusal('HSET', state, 'seq', next_seq, 'tip', next_tip)
if refusal then
    return refusal
end
-- These refuse keys of another type, too.
local sink_len, rejected_len = sink_length(sink), redis.call('LLEN', rejected)

-- Where the bits of each item are, and, by string, all that is to be read.
local format, stride = '>' .. string.rep('I2I4', width), 6 * width
local places_of, asked = {}, {}
for number = 1, strings do
    asked[number] = {}
end
for item = 1, judged do
    local found = {struct.unpack(format, places, (item - 1) * stride + 1)}
    places_of[item] = found
    if found[1] > 0 then
        for index = 1, 2 * width, 2 do
            local ask = asked[found[index]]
            local last = #ask
            ask[last + 1], ask[last + 2], ask[last + 3] = 'GET', 'u1', found[index + 1]
        end
    end
end

-- The bits that are set, by string. BITFIELD_RO refuses keys of another type.
local READ = CHUNK - CHUNK % 3
local is_set = {}
for number = 1, strings do
    local ask, set = asked[number], {}
    for from = 1, #ask, READ do
        local to = math.min(from + READ - 1, #ask)
        local values = redis.call('BITFIELD_RO', KEYS[5 + number], unpack(ask, from, to))
        for index, value in ipairs(values) do
            if value == 1 then
                set[ask[from + 3 * index - 1]] = true
            end
        end
    end
    is_set[number] = set
end

-- Each item in its order, as if those before it had been set already.
local onward, writes, unseen = {}, {}, 0
for number = 1, strings do
    writes[number] = {}
end
for item = 1, judged do
    local found = places_of[item]
    local is_filtered, is_unseen = found[1] > 0, false
    if is_filtered then
        for index = 1, 2 * width, 2 do
            local number, bit = found[index], found[index + 1]
            if not is_set[number][bit] then
                is_set[number][bit], is_unseen = true, true
                local write = writes[number]
                local last = #write
                write[last + 1], write[last + 2] = 'SET', 'u1'
                write[last + 3], write[last + 4] = bit, 1
            end
        end
    end
    if is_unseen then
        unseen = unseen + 1
    end
    if is_unseen or not is_filtered then
        onward[#onward + 1] = ARGV[first_item + item - 1]
    end
end

-- From here on nothing fails.
local WRITE = CHUNK - CHUNK % 4
for number = 1, strings do
    local write = writes[number]
    for from = 1, #write, WRITE do
        local to = math.min(from + WRITE - 1, #write)
        redis.call('BITFIELD', KEYS[5 + number], unpack(write, from, to))
    end
end
for from = 1, #onward, CHUNK do
    sink_push(sink, onward, from, math.min(from + CHUNK - 1, #onward))
end
local dropped
rejected_len, dropped = push_rejects(rejected, rejected_len, first_reject, rejected_max)
source_remove(taken, count)
redis.call('HSET', state, 'seq', next_seq, 'tip', next_tip)
return {'ok', sink_len + #onward, rejected_len, dropped, unseen}

-- Judges items by bits that lie anywhere in Redis strings. `places` has for each item the places of
-- its bits, WIDTH of them: the number of the string (2 bytes, from 1; 0 where the item goes on
-- unchecked), and where in it the bit is (4 bytes), big endian.

local FORMAT, STRIDE = '>' .. string.rep('I2I4', WIDTH), 6 * WIDTH

local function filter_refusal(keys)
    for _, key in ipairs(keys) do
        local refusal = permission_refusal('BITFIELD', key, 'SET', 'u1', 0, 1)
        if refusal then
            return refusal
        end
    end
end

-- The bits of each item, and which of all those bits are set, by string. BITFIELD_RO refuses keys of
-- another type.
local function read(keys, places, items)
    local bits_of, asked, is_set = {}, {}, {}
    for number = 1, #keys do
        asked[number], is_set[number] = {}, {}
    end
    for item = 1, #items do
        local bits = {struct.unpack(FORMAT, places, (item - 1) * STRIDE + 1)}
        bits_of[item] = bits
        if bits[1] > 0 then
            for index = 1, 2 * WIDTH, 2 do
                local ask = asked[bits[index]]
                local last = #ask
                ask[last + 1], ask[last + 2], ask[last + 3] = 'GET', 'u1', bits[index + 1]
            end
        end
    end
    local most = CHUNK - CHUNK % 3
    for number, ask in ipairs(asked) do
        local set = is_set[number]
        for from = 1, #ask, most do
            local to = math.min(from + most - 1, #ask)
            local values = redis.call('BITFIELD_RO', keys[number], unpack(ask, from, to))
            for index, value in ipairs(values) do
                if value == 1 then
                    set[ask[from + 3 * index - 1]] = true
                end
            end
        end
    end
    return bits_of, is_set
end

-- Answers the items that go on, how many of them are unseen, and what remembers those. Each item is
-- judged as if those before it had been remembered already.
local function judge(keys, places, items)
    local bits_of, is_set = read(keys, places, items)
    local onward, writes, unseen = {}, {}, 0
    for number = 1, #keys do
        writes[number] = {}
    end
    for item, bits in ipairs(bits_of) do
        local is_filtered, is_unseen = bits[1] > 0, false
        if is_filtered then
            for index = 1, 2 * WIDTH, 2 do
                local set, bit = is_set[bits[index]], bits[index + 1]
                if not set[bit] then
                    set[bit], is_unseen = true, true
                    local write = writes[bits[index]]
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
            onward[#onward + 1] = items[item]
        end
    end
    return onward, unseen, function()
        local most = CHUNK - CHUNK % 4
        for number, write in ipairs(writes) do
            for from = 1, #write, most do
                local to = math.min(from + most - 1, #write)
                redis.call('BITFIELD', keys[number], unpack(write, from, to))
            end
        end
    end
end

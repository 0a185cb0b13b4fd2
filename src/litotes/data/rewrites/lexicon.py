"""Words of one variety for words of another; things stay what they are."""

from __future__ import annotations

from litotes.data.rewrites.matching import chain, is_name, one_of, substitute, swap
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.verbs import VERBS
from litotes.data.rewrites.words import FUNCTION_WORDS

_DIMINUTIVES = {
    "afternoon": "arvo", "avocado": "avo", "barbecue": "barbie", "bbq": "barbie",
    "biscuit": "bikkie", "biscuits": "bikkies", "breakfast": "brekkie",
    "chocolate": "choccie", "christmas": "chrissie", "cup of tea": "cuppa", "football": "footy",
    "kangaroo": "roo", "mcdonald's": "maccas", "mcdonalds": "maccas", "mosquito": "mozzie",
    "mosquitoes": "mozzies", "politician": "pollie", "politicians": "pollies",
    "presents": "pressies", "relatives": "rellies",
    "service station": "servo", "sunglasses": "sunnies", "swimming costume": "cozzie",
    "tradesman": "tradie", "tradesmen": "tradies", "university": "uni", "vegetables": "veggies",
    "definitely": "defo", "bottle shop": "bottle-o", "sandwich": "sanger", "sandwiches": "sangers",
}  # fmt: skip
_BRITISH = {
    "apartment": "flat", "apartments": "flats", "cookie": "biscuit", "cookies": "biscuits",
    "elevator": "lift", "fries": "chips", "garbage": "rubbish", "gas station": "petrol station",
    "movie": "film", "movies": "films", "movie theater": "cinema", "parking lot": "car park",
    "restroom": "loo", "sidewalk": "pavement", "soccer": "football", "store": "shop",
    "stores": "shops", "takeout": "takeaway", "trash": "rubbish", "truck": "lorry",
    "trucks": "lorries", "vacation": "holiday", "candy": "sweets",
    "guy": "bloke", "guys": "blokes", "friend": "mate", "friends": "mates",
}  # fmt: skip
_INDIAN = {
    "eggplant": "brinjal", "okra": "lady's finger",
    "bell pepper": "capsicum", "waiter": "bearer",
    "goodbye": "ta-ta",
    "out of town": "out of station", "graduated": "passed out",
    "brought forward": "preponed", "vegetarian": "veg",
    "non-vegetarian": "non-veg", "restroom": "washroom", "replied": "reverted",
}  # fmt: skip
_IRISH = {
    "idiot": "eejit", "idiots": "eejits", "fun": "craic", "fine": "grand", "little": "wee",
    "small": "wee", "potatoes": "spuds",
    "mother": "mammy", "mum": "mam",
}  # fmt: skip
_PHRASE_ENDS = rf"\s*(?:[.,!?;:)]|$)|\s(?:{one_of(FUNCTION_WORDS - {'of', 'that'})})\b"

LEXICON = {
    "diminutives": Rewrite(
        about="Australian short forms: arvo, brekkie, barbie, servo",
        skips="no afternoon, breakfast, barbecue, university, football …",
        change=swap(_DIMINUTIVES, unless="'"),
        examples=(
            ("Breakfast was cold.", "Brekkie was cold."),
            ("A barbecue this afternoon", "A barbie this arvo"),
            ("Definitely worth it!", "Defo worth it!"),
        ),
    ),
    "british-words": Rewrite(
        about="British words for American: film, lift, car park, chips",
        skips="no movie, fries, elevator, parking lot, guy, friend …; in a name; “eye candy”",
        change=substitute(
            rf"(?<!you ){one_of(_BRITISH)}",
            lambda found: found[0] if is_name(found) else _BRITISH[found[0].lower()],
            unless_before=r"\b(?:arm|brain|ear|eye|mind|white|app|online) ",
        ),
        examples=(
            ("The movie was awful.", "The film was awful."),
            ("Fries and cookies", "Chips and biscuits"),
            ("That guy is in the parking lot.", "That bloke is in the car park."),
        ),
    ),
    "indian-words": Rewrite(
        about="Indian words: kindly, bearer, brinjal, out of station",
        skips="no please with a verb, no waiter, the toilet, eggplant …; cinema as an art",
        change=chain(
            swap(_INDIAN),
            substitute(
                "please",
                "kindly",
                after=rf" (?:{one_of([*VERBS, 'note', 'advise', 'confirm', 'don'])})\b",
                unless_before=r"\bto ",
            ),
            substitute(
                "(the|their|a|clean|dirty) toilet",
                r"\1 washroom",
                after=_PHRASE_ENDS,
                unless_before=r"\bon ",
            ),
            substitute("(the|their|clean|dirty) toilets", r"\1 washrooms", after=_PHRASE_ENDS),
            substitute("(at|to|in) (the|this) cinema", r"\1 \2 cinema hall", after=_PHRASE_ENDS),
        ),
        examples=(
            ("Please fix this.", "Kindly fix this."),
            ("The waiter was rude", "The bearer was rude"),
            ("My boss was out of town.", "My boss was out of station."),
        ),
    ),
    "irish-words": Rewrite(
        about="Irish words: craic, grand, wee, eejit, mam",
        skips="no fun, fine, small, little, idiot, mum … (“a little” stays)",
        change=chain(
            substitute("a little(?= [a-z]+(?:ed|y|ing)\\b)", "a wee bit", after="."),
            swap({old: new for old, new in _IRISH.items() if old not in ("little", "fun")}),
            substitute(r"(?<!a )little", "wee", after=" [a-z]"),
            substitute(r"(?<=good )fun|(?<=great )fun|(?<=such )fun", "craic"),
        ),
        examples=(
            ("It was fine.", "It was grand."),
            ("Good fun in a small pub", "Good craic in a wee pub"),
            ("What an idiot!", "What an eejit!"),
        ),
    ),
}

"""Closed lists of words that rules look for; each is short enough to be read."""

from __future__ import annotations


def listed(words: str) -> list[str]:
    """The words of a list that is written as a text."""
    return words.split()


ADJECTIVES = frozenset(
    listed("""
amazing angry annoying attentive available average awesome awful bad beautiful big bland boring
brilliant busy cheap clean clear cold comfortable convenient cool cosy crap crazy creamy crispy
crowded cute dangerous dark dead decent delicious delightful different difficult dirty disappointed
disappointing disgusting dry dull easy excellent exciting expensive fabulous fair fantastic fast
fine flavourful free fresh friendly full fun funny generous good gorgeous great greasy happy hard
healthy helpful hilarious honest horrible hot huge hungry important impressed impressive
incredible interesting kind large late lazy light lively local lonely long lost loud lovely low
lucky mediocre modern nasty neat nice noisy normal obvious old outstanding overpriced perfect
pleasant polite poor popular pretty proud quick quiet rare ready reasonable relaxing rich right
ridiculous rough rude sad safe salty scary serious sharp sick silly simple slow small smart soft
special spicy strange strong stupid superb sure sweet tasty tender terrible thick thin tiny tired
tough true ugly unfriendly unhappy unique upset useful useless warm weak weird welcoming well
wonderful worried worth wrong yummy
""")
)

_PEOPLE = """
boy boss brother chef cousin customer dad daughter doctor driver father friend girl guest guy kid
manager mate mother mum neighbour owner parent player server sister son student teacher waiter
waitress worker
"""
_THINGS = """
bar beach beer bike book bottle bowl bus burger cafe cake car chair coffee colour comment cup
dish dog dollar door drink drive egg film flavour flight floor game garden gift group hotel hour
house idea issue item job kitchen law letter light meal menu message minute month morning movie
night option order park phone photo picture piece pizza place plate platform pool portion post
price problem product pub queue question reason recipe restaurant review road room salad sandwich
sauce seat shop show side sign song staff steak step store street suburb table taste team thing
ticket toilet topping tour town train trip venue video view visit walk wall week window year
"""


def plural(noun: str) -> str:
    """The regular plural."""
    if noun.endswith(("s", "sh", "ch", "x")):
        return f"{noun}es"
    return f"{noun}s"


PEOPLE = {noun: plural(noun) for noun in _PEOPLE.split()}
THINGS = {noun: plural(noun) for noun in _THINGS.split() if noun != "staff"}
"""Nouns by their singular, with the plural."""

NOUNS = PEOPLE | THINGS
PLURALS = {many: one for one, many in NOUNS.items()}

FUNCTION_WORDS = frozenset(
    listed("""
a about after again all also although am an and any are aren't as at be because been before but by
can can't could couldn't did didn't do does doesn't don't down even ever every few for from get got
had hadn't has hasn't have haven't he he's her here him his how i i'd i'll i'm i've if in into is
isn't it it's its just less like many may me might more most much must my never no nor not now of
off on once one only or other our out over own same shall she she's should shouldn't since so some
still such than that that's the their them then there there's these they they'd they'll they're
they've this those though through till to too under until up us very was wasn't we we'd we'll we're
we've were weren't what when where which while who whom whose why will with without won't would
wouldn't yet you you'd you'll you're you've your
""")
)
"""Words that carry grammar. All others are content words."""

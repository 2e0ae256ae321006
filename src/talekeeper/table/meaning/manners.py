"""The wordings by which a line says that it is not for everyone: whispers, asides, notes, thoughts, and deeds that nobody is to see.

They are matched on a line in which every word is small, is set apart by blanks, and everybody's name is a mark: `@id`, or `i` for whoever
speaks; `“”` stands for all between two quotation marks. So `I whisper to Ibbi: “No.”` is matched as ` i whisper to @ibbi : “” `.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SAID = "“”"
PRONOUNS = {"him": "he", "his": "he", "he": "he", "her": "she", "she": "she"}

# -- people ------------------------------------------------------------------------------------------------------------

WHO = r"(?:(?:(?:the|my|old|dear|poor|good|friend|companion) )*@\w+(?! 's))"
"""Somebody by name. What is somebody's is nobody who is spoken to."""
_MANY = rf"(?:{WHO}(?: , {WHO})*(?: ,)? (?:and|&|as well as) (?:also |to |with )*{WHO})"
LIST = rf"(?:(?:both |only |just )*(?:{_MANY}|{WHO}))"
THEM = r"(?:him|her|them)"
ONESELF = r"(?:myself|himself|herself|themselves|themself)"
GROUP = (
    r"(?:(?:all |the )*(?:others|rest|group|party)|every(?:one|body)(?: else)?|all of (?:them|us|you)|them all|both of them|"
    r"my (?:friends|companions|comrades|party|crew)|ourselves|us)"
)
_NOBODY = r"(?:nobody|no one|no-one|noone|none|neither)(?: else| of them| of the others)?"
ANYONE = (
    rf"(?:any(?:one|body)(?: else)?|every(?:one|body)(?: else)?|some(?:one|body)|others?|the (?:others?|rest)|he|she|they|{THEM}|{_NOBODY})"
)

# -- saying ------------------------------------------------------------------------------------------------------------

_PLAIN = (
    "tell|say|speak|talk|inform|remind|mention|share|explain|confide|murmur|mutter|add|report|describe|let|confess|admit|reveal|disclose|"
    "answer|reply|warn"
)
SPEECH = (
    rf"(?:{_PLAIN}|ask|promise|swear|vow|advise|suggest|propose|thank|greet|beg|urge|inquire|threaten|insult|apologi[sz]e|persuade|"
    r"convince)"
)  # fmt: skip
SAYING = re.compile(rf"(?:{_PLAIN})(?:s|es|ing)?|told|said|spoke")
"""Words that say something, and neither ask nor promise nor hurt."""
_WHISPER = (
    r"(?:whisper(?:s|ed|ing)?|psst|pst|breathes?(?= (?:\S+ ){0,3}(?:in|into|to)\b)|confid(?:e|es|ed|ing)(?= (?:in|to)\b)|"
    r"(?:murmur|mutter|hiss|mouth)(?:s|es|ed|ing)?(?= (?:\S+ )?(?:to|at|in|into)\b)|sign(?:al)?s?(?= to @)|signals?(?= @)|"
    r"(?:hush|s+h+)(?= (?:, )?@))"
)
_I = (
    r"(?:(?:^|(?<=[.;!?,:*(\[”-])|\b(?:i(?:'m|'ll|'d|'ve)?|we(?:'re|'ll|'d)?|and|then|but|so|let me|please|"
    r"will|shall|would|could|can|may|might|should|must|to|by|while))"
    r"(?: (?:i|we|am|just|only|also|then|now|very|first|finally|have|had|do|(?!only\b|finally\b)\w+ly))* ?)"
)
"""What stands before one's own doing, and not before that of others."""
MINE = re.compile(rf"{_I}\b({_WHISPER})(?= )")
SPEAKS = re.compile(rf"{_I}\b({SPEECH}(?:s|es|ed|ing)?|told|said|spoke)(?= )")
TELLING = re.compile(rf" (?:that|how|what|why|where|who|whom|whether|if|about|of|concerning|because) | : | {SAID} ")
"""Where the telling ends, and what is told begins."""
OTHERS = re.compile(
    r"(?:\b(?:the|a|an|his|her|their|your|its|my|our|this|that|those|some|any|no|of|you|they|he|she|it|who|what|people|voices|stop|hears?|"
    r"heard|not|never|without|don't|didn't|doesn't|everyone|everybody|someone|somebody|nobody)|@\w+(?: 's)?)(?: \w+ly)? $|"
    rf"\b(?:ask|tell|beg|order|urge|want|convince|help|allow|get|persuade)\w* (?:@\w+|{THEM}|you) (?:not )?to $|"
    r"\b(?:what|how|why|where|whom) (?:i|we) (?:have |had |once |ever )?$"
)
"""What stands before the whisper of others, a word for it, or a wish for one."""
SENTENCE = re.compile(r" [.?!;:](?= )")
ASKS = re.compile(
    r"^\W*(?:@\w+ , )?(?:(?:who|whom|whose|what|where|why|when|how|which|is|are|was|were|do|does|did|have|has|had|am)\b"
    r"|(?:can|could|may|might|will|would|shall|should) (?!i\b|we\b))"
)

STILL_TOLD = re.compile(rf", (?:(?:and|then) )*i (?:\w+ly )?{_WHISPER} ")
"""Behind it even a question is told: `Is it true, I whisper to Ibbi?`"""
GOES_ON = re.compile(r" , (?:(?:and|then) )*(?:i|we) ")
"""`When Osric is gone, I …` asks nothing."""

# -- how, and from whom it is kept -----------------------------------------------------------------------------------------

_SECRETLY = (
    r"(?:secretly|privately(?! (?:owned|held|run|funded|paid)\b)|discreetly|confidentially|stealthily|"
    r"covertly|furtively|surreptitiously|clandestinely|unseen|unnoticed|unobserved|"
    r"on the (?:sly|quiet)|in (?:secret|private|confidence|secrecy)|under cover)"
)
_LOW = (
    r"(?:(?:very )?(?:quietly|softly)|sotto voce|(?:in an )?aside(?= (?:, )?to @)|(?<=, )whispering(?= [,.!])|(?<=^ )whispering(?= ,)|"
    r"in (?:a |an |my )?(?:very )?(?:low|quiet|hushed|soft|small|whispering) (?:voice|tones?|whisper)|"
    r"in (?:a |an )?(?:whispers?|undertone)|with (?:a )?(?:low|lowered|hushed) voice|(?:with )?my voice low|"
    r"under (?:my|his|her|their) breath|lower(?:ing)? (?:my|his|her|their) voice)"
)
WAYS = re.compile(rf" (?:, )?(?:({_LOW})|{_SECRETLY})(?: ,)?(?= )")
"""A low voice makes a secret of words alone; all else, of deeds as well."""
SAID_SO = re.compile(rf" (?:(?:{SPEECH}|{_WHISPER}|to|and|in|that|about|with|how|what)\b|@|[^\w@]|$)")
"""What stands behind a way in which something is said, and not done."""
_HEARS = (
    r"(?:hears?|hearing|overhears?|overhearing|listens?|listening|notices?|noticing|sees?|seeing|knows?|knowing|looks?|looking|"
    r"watch(?:es|ing)?|understands?|finds? out|catch(?:es|ing)?|suspects?)"
)
_NOT = (
    r"(?:(?:do|does|could|would|should|might|must|is|are|will|may|can) not|"
    r"(?:do|does|could|would|should|must|is|are|ca|wo)n't|cannot|not)(?: \w+ly)?(?: be able to)?"
)
_CAN = r"(?:is |'s |are |can |could |may |will |would )?(?:\w+ly )?"
_THAT = (
    r"(?:so(?: low| quiet| quietly| softly)?|such|(?:low|quiet|soft)(?:ly)? enough(?: so)?|careful|"
    r"making sure|taking care|hoping)(?: that)?"
)
_AWAY = (
    r"(?:is |are |'s |has |have )?(?:safely )?(?:look(?:s|ing)? (?:away|elsewhere|the other way)|"
    r"turn(?:s|ed|ing)? (?:(?:his|her|their) backs?|away|round|around)|distracted|busy|asleep|sleep(?:s|ing)?|gone|"
    r"out of (?:earshot|hearing|sight|the room))"
)
_LEFT = r"(?:has |have )?(?:left|leaves?|goes? away|falls? asleep|fallen asleep)"
_ALONE = r"(?:we are|we're|i am|i'm)"
_MUST = r"(?:may|must|can|shall|should|is to|are to|needs? to|is allowed to|is supposed to|ought to)"


class Clause(NamedTuple):
    """Something that says from whom it is kept; or, if it `lets_in`, to whom alone it is told."""

    pattern: re.Pattern[str]
    lets_in: bool = False
    early: bool = False
    """It counts only before what is told: `that it was not Osric` is told, and no manner of telling it."""


def _clause(words: str, *, lets_in: bool = False, early: bool = False) -> Clause:
    more = r"(?: it| me| us| this| that(?= [,.:])| anything| of it| about it)?(?: [,)—–-])?(?= )"
    return Clause(re.compile(f"(?<! i)(?<! we) (?:[,(—–-] )?{words}{more}"), lets_in, early)


CLAUSES = (
    _clause(rf"(?:once|when|while|as soon as|now that|now) {_ALONE} alone(?: with ({LIST}))?(?: at last)?", lets_in=True),
    _clause(rf"(?:when|while|as|where|once|as soon as|now that) ({LIST}|{ANYONE}) {_AWAY}"),
    Clause(re.compile(rf"(?:^|(?<= [,.;!?]))(?: and)? (?:when|once|as soon as|now that) ({LIST}|{ANYONE}) {_LEFT} ,(?= )")),
    _clause(
        rf"(?:i |we )?wait (?:for|until|till) ({LIST}|{ANYONE}) "
        rf"(?:to )?(?:{_AWAY}|{_LEFT}|be (?:gone|busy|distracted|asleep))(?: (?:and|then|before|,|i))*"
    ),
    _clause(rf"(?:and |but |for )?(?<!that ){_NOBODY} {_MUST} (?:ever )?(?:be )?{_HEARS}"),
    _clause(rf"not a (?:single )?word (?:of (?:it|this|that) |about (?:it|this|that) )?to (?:({LIST}|{ANYONE})|the \w+)"),
    _clause(rf"(?:too|so) (?:low|quiet|soft)(?:ly)? for ({LIST}|{ANYONE}) to (?:be able to )?{_HEARS}"),
    _clause(rf"(?:just )?(?:loud|loudly|low|quietly) enough (?:for )?only (?:for )?({LIST}) to {_HEARS}", lets_in=True),
    _clause(
        rf"(?:i |we )?(?:hope|pray|make sure|take care|see to it)(?: that)? {_NOBODY} {_CAN}{_HEARS}(?: (?:me|us|it))?(?: (?:and|,|i))*"
    ),
    _clause(rf"before ({LIST}|{ANYONE}) {_CAN}{_HEARS}"),
    _clause(r"without (?:ever )?being (?:seen|heard|noticed|observed|caught|spotted|overheard|watched)(?: by (?:anyone|anybody))?"),
    _clause(rf"without (?:(@\w+) 's|({LIST}|{ANYONE}) 's|his|her|their|anyone's|anybody's) (?:knowledge|notice|knowing|noticing)"),
    _clause(rf"without telling ({LIST}|{ANYONE})"),
    _clause(rf"(?:to |with )?(?:no one|nobody|none)(?: else)? (?:but|except|save)(?: for)? ({LIST})", lets_in=True),
    _clause(rf"so (?:low |quiet |quietly |softly )?(?:that )?only ({LIST}|he|she|they|you) {_CAN}{_HEARS}", lets_in=True),
    _clause(rf"(?:just |only )?for (?:(@\w+) 's|({LIST})|your|his|her|their) (?:ears?|eyes)(?: only| alone)?", lets_in=True),
    _clause(rf"{_THAT} (?:{_NOBODY} {_CAN}|({LIST}|{ANYONE}) {_NOT} ){_HEARS}"),
    _clause(rf"(?:without|not|do not|don't|never|not to) (?:letting|let) ({LIST}|{ANYONE}) {_HEARS}"),
    _clause(rf"without ({LIST}|{ANYONE})(?: 's)? (?:ever )?{_HEARS}"),
    _clause(r"(?:right |close )?(?:in|into|to|at|near|by) (@\w+) 's ears?(?: only| alone)?", lets_in=True, early=True),
    Clause(re.compile(rf"^ (?:(?:only|just) (?:to|for) ({LIST})|(?:to |for )?({LIST}) (?:only|alone))(?= [:,])"), lets_in=True),
    _clause(r"(?:just|only) for you(?: alone)?", early=True),
    _clause(r"(?:(?:it's|this is|that's|it is|it stays|this stays) )?our (?:own )?(?:little )?secret(?= [,:.!])"),
    _clause(r"(?:can|will|could) you keep (?:a|my|this|our) secret(?: [?])?", early=True),
    _clause(rf"unheard(?: by ({LIST}|{ANYONE}|all))?"),
    _clause(r"(?:away from|out of) (?:the others|everyone|everybody)(?: ')?(?: (?:hearing|earshot|sight))?"),
    _clause(rf"(?:but|and) (?:to )?{_NOBODY}(?= [.!)] $| $)"),
    _clause(
        rf"(?:while )?(?:keeping|hiding|concealing) "
        rf"(?:(?:it|this|that|all this) from ({LIST}|{ANYONE})|({LIST}|{ANYONE}) from {_HEARS})"
    ),
    _clause(r"behind (?:(@\w+) 's|his|her|their|everyone's|everybody's) backs?"),
    _clause(rf"out of (?:(@\w+) 's |his |her |their |everyone's )?(?:earshot|hearing|sight)(?: of ({LIST}|{ANYONE}))?"),
    _clause(rf"(?:when|while|as|where|once) (?:{_NOBODY} {_CAN}{_HEARS}|({LIST}|{ANYONE}) (?:{_NOT} {_HEARS}|{_AWAY}))(?: at)?"),
    _clause(rf"(?:please )?(?:do not|don't) (?:tell|mention (?:it|this|that) to|say anything to) ({LIST}|{ANYONE})"),
    _clause(r"keep (?:this|it|that) (?:to yourself|to yourselves|between us|quiet|secret|a secret)"),
    _clause(
        r"(?:(?:this|that|it|all this)(?: \w+)? (?:stays|remains|is|must stay|will stay) )?"
        r"(?:just |strictly |only )?between (?:you and me|us|ourselves|the two of us)"
    ),
    _clause(rf"(?:but |and )?(?:certainly )?not (?:to |for |with )?({LIST}|the others?|anyone else|anybody else)", early=True),
    _clause(rf"(?:except|but|save)(?: for)? ({LIST})", early=True),
)
"""Each is taken out before the rest is read."""
HIDES = re.compile(
    r"\b(?:(?:keep|hide|conceal)s? (?!from)(?:\S+ ){1,6}?from |not to (?:tell|mention|reveal|say|speak|show|let) (?:\S+ ){0,4}?)"
    rf"({LIST}|{ANYONE})(?= )"
)
CLOSE = re.compile(
    rf"\bonly {SPEECH} {LIST}|\b{SPEECH} (?:to |with )?(?:only {LIST}|{LIST} (?:alone|only)\b)|\blet only {LIST}|"
    rf" (?:in|into|at) (?:@\w+ 's|his|her|their) ears? |"
    rf"\b{SPEECH} (?:{LIST} (?:\S+ ){{0,3}}secrets? (?=[^\w]|that|about|of|which|from|in|i |$)|(?:\S+ ){{0,4}}secrets? (?:to|with) {LIST} )"
)
"""Words for one alone, into an ear, or about a secret."""
ONLY = re.compile(rf"\b(?:{SPEECH} (?:to |with )?only|only {SPEECH}(?: to| with)?) (\w+) ")

# -- other ways ------------------------------------------------------------------------------------------------------------

ASIDE = re.compile(
    rf"{_I}\b(?:(?:take|draw|pull|lead|call|bring|steer)s? ({LIST}|{THEM}) (?:aside|apart|to one side|to the side|into a corner)"
    r"(?! to (?!(?:talk|speak|tell|whisper|say|ask|confer|confide|share|have|discuss|warn|explain|inform|let|give)\b))"
    rf"|(?:have|share|ask for|want) (?:a )?(?:private|quiet|secret) (?:word|talk|chat|moment)s? (?:with|to) ({LIST}|{THEM})"
    rf"|(?:lean|bend)s? (?:in |over |down |closer? )*(?:to|towards?) ({LIST}|{THEM})(?= (?::|{SAID}|and (?:say|tell|ask|speak))))(?= )"
)
NOTE = re.compile(
    rf"{_I}\b(?:(?:slip|pass|palm|hand|give|send|slide|push|press|write|scribble|scrawl|jot|leave)(?:s|es)?) "
    rf"(?:down )?(?:({LIST}|{THEM}) )?"
    r"(?:a|the|this|my|another) (?:\w+ )?(?:note|message|folded paper|(?:scrap|slip|piece) of paper)(?= )"
)
SLIPS = re.compile(rf"{_I}\b(?:slip|palm|slide)s? (?=(?:{LIST}|{THEM}) |(?:\S+ ){{1,5}}?(?:to|into) (?:@|his|her|their))")
CONCEALS = re.compile(
    rf"{_I}\b(?:palms? |(?:sneak|smuggle)s? (?:the|an?|my|his|her) |(?:hide|conceal|stash)s? (?:the|an?|my|his|her|it|them)(?! self) )"
)
HUSHED = re.compile(
    r" (?:(?:and|-|but) )+(?:to )?(?:no one|nobody) else | (?:in|is) a whisper | (?:low|lower|lowest|hushed|quietest|softest) voice "
    rf"|{_I}\b(?:make sure|see to it|take care)(?: that)? @\w+ (?:can't|cannot|does not|doesn't|won't|will not) (?:hear|see)"
)
"""Signs of a secret; where nothing more was understood of it, it is asked whom it is for."""
MAY_HIDE = re.compile(r"\b(?:whisper|secret|private|quietly|unseen|unnoticed|behind \w+ back|under my breath)", re.I)
"""Signs that something in the rest of a very long line is not for everyone."""
HANDS = re.compile(rf"\b(?:give|hand|pass|offer|bring|show|return|pay|bribe|promise)s? (?:({LIST}) |(?:\S+ ){{1,6}}?to ({LIST}))")
THINKS = re.compile(
    rf" (?:to|at) {ONESELF} | {SPEECH}s? {ONESELF} | (?:in|inside) my (?:own )?(?:head|mind|thoughts|heart) |"
    rf"{_I}\b(?:silently|inwardly) (?:curse|damn|pray|{SPEECH})s? |\b(?:pray|curse|damn|{SPEECH})s? (?:\S+ ){{0,4}}?(?:silently|inwardly) |"
    rf"{_I}\b(?:wonder|ponder)s? (?:who|whom|whose|whether|if|what|why|how|where|when|which) (?!(?:.* )?you )|"
    rf"{_I}\b(?:decide|plan|intend|resolve|mean|plot|scheme)s? to (?:secretly )?"
    r"(?:betray|cheat|double-?cross|deceive|trick|swindle|outwit|turn against|abandon) |"
    rf"{_I}\b(?:plot|scheme)s? (?!an? )|"
    rf"{_I}\bwhispers? (?:(?:a|an|my|the|some|silent|short|quick|little|old) )*"
    r"(?:prayers?|oath|curses?|blessings?)(?! (?:to|with|in|into|at) @) |"
    rf"{_I}\b(?:think|wonder|ponder|reflect|muse|brood)s? (?:silently |about |of |over |: |(?:, )?{SAID} )|"
    rf"{_I}\b(?:ponder|contemplate)s? |{SAID} (?:, )?i (?:think|wonder|muse) [.]|"
    rf"{_I}\b(?:secretly|privately) (?:think|hope|suspect|want|wish|plan|decide|believe|doubt|wonder|know|fear|despise|hate|love|enjoy|"
    r"feel|intend|resolve|vow|swear|plot|laugh|smile|regret|curse|pray)s? |"
    rf" mental note |\bi (?:tell (?:nobody|no one)|say nothing (?:to|about|of|that)|tell (?:{LIST}|{THEM}) nothing) |"
    r"\bi (?:do not|don't|will not|won't|would not) (?:tell|mention|reveal|show|let|say anything to|admit) (?:this |that |it |anything )?"
    rf"(?:to )?(?:{LIST}|any(?:one|body)|{THEM}|the others) "
)
KEEPS = re.compile(r"\bkeeps? (?:\S+ ){1,8}?to myself (?!that|how|what|:)")
"""`I keep the lantern to myself` is no thought, and no secret."""
TOWARDS = re.compile(
    rf"\b(?:to|towards?|beside|near|with|next to|close to|over to|approach|join|beckon|hug|find|address|pull|draw|hold|"
    rf"kiss|embrace|nudge|squeeze) ({LIST})"
    r"(?: 's ears?| close| closer| nearer| over)?"
    rf"(?= (?:and|,|to|while|then|\)|\*|{SAID}|\.) )"
)

PAUSES = re.compile(
    r"(?: i| we) (?:think|ponder|reflect|wonder)s? (?:(?:about|over|on) (?:it|this|that|the matter) )?"
    r"(?:(?:for )?(?:a|some) (?:long |short )?(?:moment|while|bit|second|minute|time) )?(?:, )?(?:(?:and )?then|and|before)(?= )"
)
"""Thinking that keeps nothing from anyone: what counts is what is done then."""

# -- one line, and more than one thing -----------------------------------------------------------------------------------

_JOINT = rf" (?:[,.;!?]|and|but|then|while|{SAID})(?: (?:and|then|but|also|now|afterwards?|later|first|i|we|immediately|,))*"
SAYS = re.compile(rf"{SPEECH}|whisper|murmur|mutter")
BEFORE_THOUGHT = re.compile(rf"{_I}\b(?:{SPEECH}|agree|accept|refuse)(?:s|es)?(?= ).* (?:but|and|while|then|[.;!?]) ")
MORE = re.compile(rf"{_JOINT}(?: \w+ly)? (?P<verb>[a-z]+)(?=(?P<behind>(?: \S+){{0,3}}) )")
"""Perhaps something that is done besides."""
MORE_IN_SECRET = re.compile(
    rf"{_JOINT.replace(f'|{SAID}', '')}(?: (?:{_LOW}(?= (?:, )?(?:(?:i|we) )?(?:{SPEECH}|{_WHISPER}|to @))|{_SECRETLY}))"
    r"(?: (?:,|then|also|i|we))* (?P<verb>to(?= @)|[a-z]+)(?= )"
)
"""What is told goes over into something secret."""
BRACKETED = re.compile(rf"[(*\[] (?:(?:\w+ly|aside|,) )*to ({LIST})")
"""`Marlo, we agree. (to Osric) He lies.`"""
SPOKEN_TO = re.compile(rf"{_I}\b(?:{SPEECH})(?:s|es)?(?: {SAID})?(?: (?:to|with|at))? ({LIST})(?= )")
ASKED_OF = re.compile(rf"^ ({LIST}) ,|, ({LIST}) [?!]")
ALOUD = frozenset({"aloud", "loudly", "everyone", "everybody", "all", "others"})
PROVIDED = re.compile(r" (?:if|when|once|unless|until|as soon as) [^.;!?]*$")
"""`that if Marlo sleeps, I take it`: no deed as yet."""
MEANT_TO = re.compile(
    rf" (?:to (?!@|the |{THEM} |{ONESELF} )|(?:let's|should|shall|must|will|would|can|could|may|might|we|you|they|we'll|you'll|we'd|"
    r"you'd|do not|don't) )"
)
"""`that we should go and take it`: all of it is told."""
WHISPER_ABROAD = re.compile(
    r"\w*fl(?:ü|ue)ster\w*|\bfluister\w*|\braun(?:e|t|en)\b|\bchuchot\w*|\bsuss?urr\w*|\bmurmure\b|\bbisbigli\w*|\bszep[ct]\w*|\bšep[tč]\w*|"
    r"\b(?:за|про|на)?шеп[тч]\w*|\bh?viska\w*|\bhvisk\w*|\bkuiskaa\w*|\bfısılda\w*|\bheimlich\b|\bins ohr\b|\ben (?:secreto?|cachette)\b|"
    r"\bal oído\b|\bà l['’]oreille\b|\bin segreto\b|耳语|低声|悄悄|小声|ささや|囁|こっそり|속삭"
)
"""Where the table reads no other language, at least it sees that it is not for all."""

# -- around whom it is said to ---------------------------------------------------------------------------------------------

_ENDS = (
    "that", "how", "what", "why", "where", "who", "whom", "whether", "if", "about", "of", "concerning", "because", ":", ",", ".", ";", "!",
    "?", ")", "]", "*", SAID, "-", "–", "—", "to", "the", "a", "an", "my", "our", "some", "something", "in", "into", "not", "but", "with",
    "for", "so", "when", "and", "this", "it",
)  # fmt: skip
ENDS = frozenset(_ENDS) | {""}
"""What may stand behind those to whom something is said."""
_SKIP = r"(?: (?:softly|gently|urgently|back|quick|something|anything|aloud|over|,|!|\*|\)))*"
_STOP = "|".join(map(re.escape, _ENDS))
TO_EAR = re.compile(rf"{_SKIP} (?:\S+ ){{0,5}}?(?:in|into|to) (?:(@\w+) 's|(his|her|their)) ears?(?= )")
TO_GROUP = re.compile(rf"{_SKIP} (?:to |with |among |amongst )?{GROUP}(?= )")
TO_NAMED = re.compile(rf"{_SKIP} (?:to |with |at |in |for )?({LIST})(?= )")
TO_THEM = re.compile(rf"{_SKIP} (to |with |in )?({THEM}|you)(?= (\S+)| $)")
TO_UNKNOWN = re.compile(rf"{_SKIP} (?:to|with) ((?:(?:the|a|an|my|our) )?(?:(?!(?:{_STOP}) )\S+ ){{1,3}})")
TO_WORD = re.compile(rf"{_SKIP} (\w+) ")
OR_WHO = re.compile(r" (?:, )?or (?:to )?@")
AND_MORE = re.compile(rf" (?:, )?(?:and|&) (?:to )?({THEM}|(?!to |i |we )[^\W\d_]+)(?= (?:that|:|about|,|{SAID}|$|\.|so))")
ABOUT = re.compile(rf" (?:about|of) (?:{WHO}|{THEM}|it|this|that)(?= )")
AND_TO = re.compile(rf" and to {LIST} (?:that|:|{SAID})")
MISSPELT = (
    "confidence", "discreetly", "murmur", "privately", "quietly", "secretly", "silently", "stealthily", "unnoticed", "unseen", "whisper",
    "whispered", "whispering", "whispers",
)  # fmt: skip
"""What is mended where the fingers slipped: it would be told to all."""

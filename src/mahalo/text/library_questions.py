"""Two hundred questions to the desk of a public library, by what they are about; written for this package."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LibraryQuestions:
    """Short English questions and their topics, of equal length.

    Attributes
    ----------
    texts : tuple of str
    topics : tuple of str
        One of ten topics for each text; each topic has twenty texts.
    """

    texts: tuple[str, ...]
    topics: tuple[str, ...]


def load_library_questions() -> LibraryQuestions:
    """Return 200 questions of visitors to a library on ten topics, for examples and tests."""
    pairs = [(line, topic) for topic, lines in _QUESTIONS.items() for line in lines.strip().splitlines()]
    return LibraryQuestions(tuple(text for text, _ in pairs), tuple(topic for _, topic in pairs))


_QUESTIONS = {
    "renew a loan": """
Can I keep this book for another two weeks?
How do I extend the loan of a novel I have not finished?
Please prolong everything I borrowed last month
I need more time with my books
Is it possible to renew online?
Why does the website refuse to extend my loan?
How many times may I renew the same title?
My novel is due tomorrow and I am only halfway through
Could you give me a later due date?
I would like to borrow the same book again without bringing it in
The renew button is grey, what now?
May I extend a loan by phone?
Does a film have the same loan period after renewal?
I am travelling and cannot bring the books before Friday
Push back the date for all my items please
Are loans renewed automatically?
I want to keep the atlas a bit longer
Can my wife extend the books on my account?
What happens if I forget to renew?
Is there a limit to how long I can hold on to a book?
""",
    "lost card": """
I cannot find my library card
My card was stolen with my wallet
How do I get a replacement card?
What does a new card cost if I lost the old one?
Somebody else may be using my card, please block it
My daughter dropped her card on the bus
The card is broken and the gate does not read it
I left my card in another town
Can I borrow books today without my card?
The barcode has worn off, the machine does not recognise me
Where do I report a missing card?
I found a card that is not mine
Will my old card still work after I get a new one?
My purse is gone and the library card was inside
Please deactivate my membership card at once
The dog chewed my card
May I show my passport instead of the card?
How long does it take until a new card is printed?
My name changed, do I need another card?
The chip of my card no longer opens the door
""",
    "opening hours": """
When do you close today?
Are you open on Sunday?
What time does the reading room open in the morning?
Is the library open on public holidays?
How late can I stay on Thursday evening?
Do you close over lunch?
Will you be open between Christmas and New Year?
At what hour do the doors open on Saturday?
Is the branch by the station open now?
Do the hours change in summer?
Until when is the desk staffed?
Can I come in before nine?
Which days are you shut?
Is anyone there at the weekend?
I work until six, can I still visit after that?
Are you open on Easter Monday?
When does the children's floor close?
Is the building accessible around the clock?
Why were the doors locked this afternoon?
Tell me the times of the mobile library
""",
    "book a room": """
I would like to reserve a study room for four people
Is there a quiet room I can book for an exam?
How do I cancel the meeting room for tomorrow?
Our reading circle needs a place to meet every week
Does the group room have a screen?
Can I hire the hall for a birthday?
How many people fit into the seminar room?
May we eat in the meeting room?
Someone is sitting in the room I reserved
How long can I keep a study cabin?
What does the large hall cost per hour?
Is a room free this afternoon?
I need a space for a video call
Can students book rooms without paying?
Please move our room booking to Wednesday
Do you have a room with a piano?
Where do I pick up the key of the group room?
I want to practise a talk in front of a projector
Is there a soundproof booth?
Can a club use your rooms in the evening?
""",
    "printing and copying": """
How much is a black and white copy?
Can I print from my phone?
The printer on the second floor is out of paper
Where can I scan a document?
Do you print in colour?
My print job has vanished
How do I pay for copies?
Is it possible to print on large paper?
May I copy a whole book?
The copier ate my coins
Can I send a file to your printer by mail?
Does the scanner save to a memory stick?
I need to print a boarding pass quickly
Are double-sided prints cheaper?
The pages come out with black stripes
Do you have a machine for laminating?
Which computers are connected to the printer?
May I bring my own paper for the printer?
How many pages may I print each day?
Can you fax a form for me?
""",
    "fines": """
Why do I owe four euros?
How do I pay my late fee?
I returned the book in time and still got a reminder
What is the charge for a day of delay?
Can I pay my fine by bank transfer?
Please cancel this fee, I was in hospital
My account is blocked because of unpaid charges
Do children pay for late returns?
I damaged a book, how much will it cost me?
Is there a maximum fee for one item?
The reminder letter is wrong
Can I settle what I owe in instalments?
I lost a book, must I pay the full price?
Where do I see how much I have to pay?
Do you take credit cards for fees?
You charged me twice for the same reminder
I spilled coffee on a magazine, what now?
Does the fee grow while you are closed?
I got a bill for a book I never borrowed
Is the first week of delay free?
""",
    "electronic books": """
How do I read an e-book on my tablet?
The app says my licence has expired
Which readers work with your electronic books?
I cannot download the audio book
How many e-books may I have at a time?
Can I return a digital title early?
My e-reader asks for a password
Why is there a waiting list for a file?
Do you offer newspapers online?
The audio book stops after the first chapter
Can I listen to books in the car without internet?
I forgot the login for the digital library
Is there an app for your electronic collection?
How do I transfer the file to my reader?
Do digital loans end by themselves?
The text is too small on my screen
Are there comics in the digital library?
Can I stream films from home?
Which format do the downloads have?
The download is stuck at ninety percent
""",
    "reserve a title": """
Somebody has the book I want, can I be next?
How do I place a hold on a novel?
Where is the shelf with reserved books?
How long do you keep a reserved book for me?
I got a mail that my title has arrived
Can you get a book from another branch?
I want to cancel my hold
What is my place in the queue?
Does a reservation cost anything?
Please put the new thriller aside for me
When will the copy on loan come back?
Can a friend collect what I ordered?
I ordered a book two weeks ago and heard nothing
Is interlibrary loan possible for old journals?
May I reserve a film that is on the shelf?
How many titles can I put on hold?
My reserved item was given to another reader
Let me know as soon as it is available
Can I choose the branch where I pick it up?
You do not own this title, could you buy it?
""",
    "events": """
Is there story time for toddlers this week?
When is the next author reading?
Do I need a ticket for the lecture on Friday?
How do I sign up for the writing workshop?
Is the film evening free?
What is on for teenagers during the holidays?
Has the concert been cancelled?
Are there courses for using a computer?
Can I bring my baby to the reading?
Who speaks at the talk about bees?
Is the chess afternoon open to beginners?
My son would like to join the coding club
At which hour does the puppet show begin?
Are there seats left for the poetry night?
Will the lecture be recorded?
Where do I find the programme for autumn?
Do you run a language café?
I would like to give a talk here
Is there sign language at the performance?
Does the knitting group still meet?
""",
    "membership": """
How do I become a member?
What does it cost to join for a year?
Do pensioners get a discount?
Can tourists sign up?
Which documents do I need to register?
I moved, how do I change my address?
Please end my membership
Is joining free for students?
At what age can a child have an account?
Can I give a membership as a present?
My subscription ran out, how do I start again?
Do I have to live in the town to join?
May a school class register together?
I want to change the mail address in my account
Is there a family tariff?
How do I sign up my little brother?
Does my membership count in the neighbouring town?
Why do you want to know my date of birth?
Delete all data you have about me
Can I try the library for a month before I join?
""",
}
